#include "output_paths.hpp"

#include <filesystem>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::cli {
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

}  // namespace untax::cli
