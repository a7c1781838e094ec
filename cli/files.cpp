#include "files.hpp"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

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

}  // namespace untax::cli
