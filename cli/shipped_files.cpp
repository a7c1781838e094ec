#include "shipped_files.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace untax::cli {
namespace {

namespace fs = std::filesystem;

/// Where `folder` lies beside the executable: in a wheel, under an installation's prefix, and in a
/// clone whose build folder is build/PRESET.
fs::path folder_beside_executable(const std::string& folder) {
  std::error_code failure;
  const fs::path executable = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return {};
  const fs::path bin = executable.parent_path();
  for (const char* relative : {"..", "../share/untax", "../.."}) {
    const fs::path candidate = (bin / relative / folder).lexically_normal();
    if (fs::is_directory(candidate, failure)) return candidate;
  }
  return {};
}

/// Calibrations and judgements have names with a second dot, and are read through a machine.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().stem().string();
    const bool has_second_suffix = name.ends_with(".calibration") || name.ends_with(".judgement");
    if (entry.path().extension() == ".json" && !has_second_suffix) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string resolve_shipped(const std::string& folder, std::string& text) {
  std::error_code failure;
  if (text.empty() || text.find('/') != std::string::npos || text.ends_with(".json") ||
      fs::exists(text, failure)) {
    return {};
  }
  const fs::path shipped = folder_beside_executable(folder);
  const fs::path file = shipped / (text + ".json");
  if (!shipped.empty() && fs::is_regular_file(file, failure)) {
    text = file.string();
    return {};
  }
  const std::vector<std::string> names = names_in(shipped);
  if (names.empty()) return fmt::format("{} is neither a file nor a known name", text);
  return fmt::format("{} is neither a file nor one of {}", text, fmt::join(names, ", "));
}

CLI::Validator shipped_file(const char* folder) {
  return CLI::Validator(
      [folder = std::string(folder)](std::string& text) { return resolve_shipped(folder, text); },
      "NAME|FILE");
}

}  // namespace untax::cli
