#pragma once

#include <optional>
#include <string>

#include <untax/core/pattern.hpp>
#include <untax/taxes/report.hpp>

namespace untax {

/// One thing that was measured at one problem on GPUs, all in turn.
struct pattern_figure {
  std::string by;  ///< the pattern, "bulk_library eager", "cuBLASLt alone", ...
  /// Of a whole operator: what it is. None: a part of it, alone.
  std::optional<pattern> how;
  std::optional<pattern> asked;       ///< differs from `how` where that was `automatic`
  bool library = false;               ///< bulk_library, or a part of it
  std::string explanation;            ///< what was chosen
  std::optional<spread> time;         ///< seconds of one run; none if it refused
  std::optional<spread> traced_time;  ///< the same while a trace is recorded, where that was asked
  std::string refusal;                ///< why it did
  double error = 0;                   ///< the largest of all ranks, of all checks
};

/// Nothing writes the weights that GPUs are measured with, as those of a model, so patterns may
/// read some while the kernel ahead ends: `operator_options::constant_weights`.
inline constexpr bool weights_are_constant = true;

/// What `by` says.
inline constexpr const char* library_eager = "bulk_library eager";
inline constexpr const char* library_graph = "bulk_library graph";
inline constexpr const char* library_gemm_alone = "cuBLASLt alone";
inline constexpr const char* own_gemm_alone = "GEMM alone";

}  // namespace untax
