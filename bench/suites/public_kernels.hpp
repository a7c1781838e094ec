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

/// A kernel of others with its times, from bench/data/public_kernels.json.
struct public_kernel {
  std::string operator_name;
  gather_axis gather = gather_axis::rows;
  std::string label;   ///< its name in tables
  std::string name;    ///< empty: not on record
  std::string source;  ///< a paper or a repository; empty: not on record
  std::string commit;
  std::string machine;  ///< the machine that the kernel ran on
  std::string how;      ///< how its times were measured
  std::vector<public_time> times;

  /// The seconds for a problem, or 0 if there is no time.
  [[nodiscard]] double seconds(const gemm_problem& problem, int world) const noexcept;
};

/// Throws `invalid_argument` for text that is not such a file: a field is missing, the label,
/// machine or way of measuring is empty, or a time is not positive.
[[nodiscard]] std::vector<public_kernel> parse_public_kernels(std::string_view text);

/// The kernels of the file, which is compiled in.
[[nodiscard]] const std::vector<public_kernel>& public_kernels();
/// The kernel of an operator, or null.
[[nodiscard]] const public_kernel* public_kernel_of(std::string_view operator_name);

/// The file's text, made by the build.
[[nodiscard]] std::string_view public_kernels_text() noexcept;

}  // namespace untax::bench
