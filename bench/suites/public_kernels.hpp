#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/common/workload.hpp"

namespace untax::bench {

/// One time of a kernel.
struct public_time {
  int ranks = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  double seconds = 0;
};

/// A kernel of others, and how long it takes, as bench/data/public_kernels.json says.
struct public_kernel {
  std::string operator_name;
  gather_axis gather = gather_axis::rows;
  std::string label;   ///< what tables call it
  std::string name;    ///< empty: not on record
  std::string source;  ///< a paper or a repository; empty: not on record
  std::string commit;
  std::string machine;  ///< that it ran on
  std::string how;      ///< its times were found
  std::vector<public_time> times;

  /// Of a problem, or 0.
  [[nodiscard]] double seconds(const gemm_problem& problem, int world) const noexcept;
};

/// Throws `invalid_argument` for text that is not such a file: a kernel whose name, source, machine
/// or way of measuring is not said, or said not to be known, a time that is none.
[[nodiscard]] std::vector<public_kernel> parse_public_kernels(std::string_view text);

/// Those of the file, which is compiled in.
[[nodiscard]] const std::vector<public_kernel>& public_kernels();
/// The one of an operator, or null.
[[nodiscard]] const public_kernel* public_kernel_of(std::string_view operator_name);

/// The file's text, made by the build.
[[nodiscard]] std::string_view public_kernels_text() noexcept;

}  // namespace untax::bench
