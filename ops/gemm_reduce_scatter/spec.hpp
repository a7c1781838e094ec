#pragma once

#include <array>

#include <untax/ops/gemm_reduce_scatter.hpp>

#include "ops/common/gemm_spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry gemm_reduce_scatter_entry();

template <>
struct spec_of<gemm_reduce_scatter> : gemm_spec<gemm_reduce_scatter, gemm_reduce_scatter_problem> {
  static constexpr std::string_view name = "gemm_reduce_scatter";
  static constexpr std::string_view summary =
      "rows of sum_r A_r x B_r^T: k is sharded, the sum is bitwise reproducible";
  static constexpr std::array<std::string_view, 3> without = {"pull", "panel_k", "phases"};
  static constexpr auto* entry = &gemm_reduce_scatter_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&problem::m>("m", "rows of A, of all ranks").positive(),
      fields::integer<&problem::n>("n", "columns of the result").positive(),
      fields::integer<&problem::k>("k", "the reduction dimension, all ranks together").positive(),
      fields::element_type<&problem::type>("of A, B and C"),
      fields::partials<&problem::partials>("of partial results on their way: fp32, or as type"),
  };

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    const std::int64_t k = gemm_reduce_scatter::k_shard(p, world, rank);
    return shapes_of(p, {p.m, k}, {p.n, k}, gemm_reduce_scatter::c_shard(p, world, rank));
  }
};

}  // namespace untax
