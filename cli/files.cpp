#include "files.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <untax/core/error.hpp>

#include "output.hpp"

namespace untax::cli {

namespace {

std::string obstacle(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path file(path);
  if (std::filesystem::is_directory(file, ignored)) return "it is a folder";
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, ignored))
    return fmt::format("there is no folder {}", folder.string());
  const bool exists = std::filesystem::exists(file, ignored);
  if (access(exists ? path.c_str() : folder.c_str(), W_OK) != 0) return "it is protected";
  return {};
}

}  // namespace

std::string why_not_writable(const std::string& path) {
  if (path == "-") return {};
  if (path.empty()) return "the path is empty; give that of a file, or - for stdout";
  const std::string reason = obstacle(path);
  if (reason.empty()) return {};
  return fmt::format(
      "cannot write {}: {}; give a path in a folder that exists and that you may write to", path,
      reason);
}

void write_json(const std::string& path, const std::string& text) {
  write_text(path, text);
  if (path != "-") print("JSON: " + path + "\n");
}

namespace {

namespace fs = std::filesystem;

/// Whether both paths name one file, which need not exist yet.
bool same_file(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-") return a == b;
  std::error_code failed;
  if (fs::exists(a, failed) && !fs::is_regular_file(a, failed)) return false;
  const fs::path whole = fs::weakly_canonical(fs::absolute(a, failed), failed);
  return a == b || whole == fs::weakly_canonical(fs::absolute(b, failed), failed);
}

}  // namespace

void refuse_same_paths(const std::vector<std::pair<std::string, std::string>>& option_and_path) {
  for (std::size_t i = 0; i < option_and_path.size(); ++i) {
    const auto& [option, path] = option_and_path[i];
    if (path.empty()) continue;
    for (std::size_t j = i + 1; j < option_and_path.size(); ++j) {
      const auto& [other, other_path] = option_and_path[j];
      if (!same_file(path, other_path)) continue;
      throw error(errc::invalid_argument,
                  path == "-"
                      ? fmt::format("{} and {} are both -; stdout takes one of them, so give the "
                                    "other a path",
                                    option, other)
                      : fmt::format("{} and {} are both {}; give one of them another path", option,
                                    other, path));
    }
  }
}

namespace {

namespace fs = std::filesystem;

/// The path of `folder` relative to the executable: in a wheel, under an installation's prefix, and
/// in a clone whose build folder is build/PRESET.
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

}  // namespace untax::cli
