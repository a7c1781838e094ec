#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <untax/ops/merge_partial_attention.hpp>

#include "ops/common/memory_need.hpp"

namespace untax {

inline constexpr std::string_view merge_partial_attention_name = "merge_partial_attention";

/// The patterns of merge_partial_attention.
inline constexpr std::array merge_patterns = {pattern::bulk_synchronous, pattern::fused_sequential,
                                              pattern::fused_specialized};

/// Throws `invalid_argument` unless the sizes are consistent.
void require_sensible(const merge_partial_attention_problem& problem, int rank);

struct planned_merge {
  merge_partial_attention_plan plan;
  std::string explanation;
};

/// Fills in the options that are left open. Throws `invalid_argument` for impossible options.
[[nodiscard]] planned_merge make_plan(const world& w,
                                      const merge_partial_attention_problem& problem,
                                      const merge_partial_attention_options& options);

/// As `make_plan`, for a rank with a GPU, where the operator is one kernel. Its `workers` are
/// blocks; 0: the GPU determines their number. Throws `unsupported` for other patterns.
[[nodiscard]] planned_merge plan_merge_on_gpus(int world, int rank,
                                               const merge_partial_attention_problem& problem,
                                               const merge_partial_attention_options& options);

/// The number of elements in 16 bytes, which a lane of a kernel takes at a time.
[[nodiscard]] constexpr std::int64_t chunk_elements(dtype type) noexcept {
  return 16 / static_cast<std::int64_t>(size_of(type));
}

/// The parts of a plan in which all ranks have to agree: see plan_agreement.hpp.
[[nodiscard]] std::string fields_of(const merge_partial_attention_plan& plan);

/// "4 tokens, 32 heads of 128, bf16, all heads to all".
[[nodiscard]] std::string describe(const merge_partial_attention_problem& problem);

/// An upper bound on the bytes of symmetric heap that an operator takes from a rank.
[[nodiscard]] std::size_t heap_for(const merge_partial_attention_problem& problem, int world);

}  // namespace untax
