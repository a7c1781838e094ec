#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <untax/ops/all_reduce_norm.hpp>

#include "ops/common/planning.hpp"

namespace untax {

inline constexpr std::string_view all_reduce_norm_name = "all_reduce_norm";

/// The largest `hidden`.
inline constexpr std::int64_t most_hidden = 16384;

/// Chooses the options that are left open, without comparing them with other ranks. Throws
/// `invalid_argument`, and `unsupported` in a world of GPUs.
[[nodiscard]] made_plan plan_norm(const world& w, const all_reduce_norm_problem& problem,
                                  const operator_options& options);

/// As `plan_norm`, for a rank with a GPU, where the operator is one kernel.
[[nodiscard]] made_plan plan_norm_on_gpus(int world, int rank,
                                          const all_reduce_norm_problem& problem,
                                          const operator_options& options);

/// The number of phases that untax chooses. The second phase saves bytes and takes one more hop.
/// With fewer tokens than ranks there is one phase, since some ranks would add nothing.
[[nodiscard]] int phases_for(const all_reduce_norm_problem& problem, int world) noexcept;

/// Whether the operator has a pattern.
[[nodiscard]] constexpr bool norm_has_pattern(pattern how) noexcept {
  return how == pattern::bulk_synchronous || how == pattern::fused_sequential ||
         how == pattern::fused_specialized;
}

/// The places of the operator's own results, in bytes from their beginning.
struct norm_room {
  std::size_t out = 0;
  std::size_t scales = 0;
  std::size_t bytes = 0;
};
[[nodiscard]] norm_room room_of(const all_reduce_norm_problem& problem) noexcept;

/// Bytes of an element of `out`.
[[nodiscard]] constexpr std::size_t normed_size(const all_reduce_norm_problem& p) noexcept {
  return p.output == norm_output::same ? size_of(p.type) : 1;
}

/// An upper bound on the bytes of symmetric heap of each rank; `phases` as in the options.
[[nodiscard]] std::size_t heap_for(const all_reduce_norm_problem& problem, int world,
                                   int phases) noexcept;

}  // namespace untax
