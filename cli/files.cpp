#include "files.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::cli {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw error(errc::invalid_argument,
              fmt::format("cannot write {}: {}; give a path in a folder that exists and that you "
                          "may write to",
                          path, why));
}

}  // namespace

void require_writable(const std::string& path) {
  if (path == "-") return;
  std::error_code ignored;
  const std::filesystem::path file(path);
  if (std::filesystem::is_directory(file, ignored)) refuse(path, "it is a folder");
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, ignored)) {
    refuse(path, fmt::format("there is no folder {}", folder.string()));
  }
  const bool exists = std::filesystem::exists(file, ignored);
  if (access(exists ? path.c_str() : folder.c_str(), W_OK) != 0) refuse(path, "it is protected");
}

void write_json(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) refuse(path, "writing failed");
  fmt::print("JSON: {}\n", path);
}

}  // namespace untax::cli
