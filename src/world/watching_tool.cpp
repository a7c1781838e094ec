#include "watching_tool.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {

std::optional<std::string> watching_tool(std::string_view maps, std::string_view injected) {
  // The tool loads its library into the process.
  for (const std::string_view library : {"libsanitizer-collection", "libsanitizer-public"}) {
    if (maps.find(library) != maps.npos || injected.find(library) != injected.npos)
      return "compute-sanitizer";
  }
  return std::nullopt;
}

std::optional<std::string> watching_tool() {
  std::ifstream file("/proc/self/maps");
  const std::string maps{std::istreambuf_iterator<char>(file), {}};
  const char* injected = std::getenv("CUDA_INJECTION64_PATH");  // NOLINT(concurrency-mt-unsafe)
  return watching_tool(maps, injected != nullptr ? injected : "");
}

void require_kernels_side_by_side(int ranks_per_gpu, const std::optional<std::string>& tool) {
  if (ranks_per_gpu == 1 || !tool) return;
  throw error(errc::unsupported,
              fmt::format("{} ranks share a GPU under {}, which runs one kernel at a time, while "
                          "kernels of ranks wait for each other; give each rank a GPU of its own",
                          ranks_per_gpu, *tool));
}

}  // namespace untax
