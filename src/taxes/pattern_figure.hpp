#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include <untax/core/pattern.hpp>
#include <untax/taxes/report.hpp>

namespace untax {

/// One measurement of a problem on GPUs. All measurements of a problem are made in turn.
struct pattern_figure {
  std::string by;  ///< the pattern, "bulk_library eager", "cuBLASLt alone", ...
  /// The pattern of an operator; nothing for a part of an operator alone.
  std::optional<pattern> how;
  std::optional<pattern> asked;       ///< differs from `how` if it is `automatic`
  bool library = false;               ///< bulk_library, or a part of it
  std::string explanation;            ///< the plan that was chosen
  std::optional<spread> time;         ///< seconds of one run; nothing if it was refused
  std::optional<spread> traced_time;  ///< as `time`, while a trace is recorded, if asked for
  std::string refusal;                ///< the reason why it was refused
  double error = 0;                   ///< the largest over all ranks and checks
};

/// In measurements on GPUs nothing writes the weights, as in a model, so patterns may read some
/// before the previous kernel ends: `operator_options::constant_weights`.
inline constexpr bool weights_are_constant = true;

/// Values of `by`.
inline constexpr const char* library_eager = "bulk_library eager";
inline constexpr const char* library_graph = "bulk_library graph";
inline constexpr const char* library_gemm_alone = "cuBLASLt alone";
inline constexpr const char* own_gemm_alone = "GEMM alone";
inline constexpr const char* automatic_exact = "automatic";
inline constexpr const char* automatic_capacity = "automatic, capacity";

/// The capacity for `rows` rows, as PyTorch's operators are planned: the next power of two, at
/// least 64.
[[nodiscard]] constexpr std::int64_t capacity_of(std::int64_t rows) noexcept {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(rows, 64))));
}

}  // namespace untax
