#pragma once

#include <algorithm>
#include <cstdlib>

namespace untax_test {

/// How much slower tests of this build run than those of a release build: 5 under sanitizers.
[[nodiscard]] inline int slower_build() {
  const char* const scale = std::getenv("UNTAX_TEST_SCALE");  // NOLINT(concurrency-mt-unsafe)
  return scale == nullptr ? 1 : std::max(1, std::atoi(scale));
}

/// So many random trials, fewer in a slower build.
[[nodiscard]] inline int trials(int usual) { return std::max(1, usual / slower_build()); }

}  // namespace untax_test
