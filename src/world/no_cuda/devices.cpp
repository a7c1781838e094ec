#include <untax/world/devices.hpp>

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

namespace untax {
namespace {

std::string text_of(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): untax never sets one
  return value == nullptr ? "" : value;
}

/// The path of nvcc, on the PATH or where the build looks for it; empty if there is none.
std::string compiler_for_gpus() {
  std::string folders = text_of("PATH");
  for (const char* root : {"CUDA_HOME", "CUDA_PATH"}) folders += ":" + text_of(root) + "/bin";
  folders += ":/usr/local/cuda/bin";
  for (std::string_view rest = folders; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(folder.size() < rest.size() ? folder.size() + 1 : folder.size());
    const std::string nvcc = fmt::format("{}/nvcc", folder);
    if (!folder.empty() && access(nvcc.c_str(), X_OK) == 0) return nvcc;
  }
  return "";
}

}  // namespace

device_survey survey_devices(bool /*measure*/) {
  device_survey survey;
  survey.problem = "this untax was built without CUDA";
  if (const std::string nvcc = compiler_for_gpus(); !nvcc.empty()) {
    survey.problem +=
        fmt::format(", and nvcc is here ({}): the preset cuda builds it for GPUs", nvcc);
  }
  return survey;
}

}  // namespace untax
