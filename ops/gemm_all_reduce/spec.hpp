#pragma once

#include <array>

#include <untax/ops/gemm_all_reduce.hpp>

#include "ops/common/gemm_spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry gemm_all_reduce_entry();

template <>
struct spec_of<gemm_all_reduce> : gemm_spec<gemm_all_reduce, gemm_all_reduce_problem> {
  static constexpr std::string_view name = "gemm_all_reduce";
  static constexpr std::string_view summary =
      "sum_r A_r x B_r^T complete at every rank, the same bits everywhere: k is sharded";
  static constexpr std::array<std::string_view, 2> without = {"pull", "panel_k"};
  static constexpr auto* entry = &gemm_all_reduce_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&problem::m>("m", "rows of A and of the result").positive(),
      fields::integer<&problem::n>("n", "columns of the result").positive(),
      fields::integer<&problem::k>("k", "the reduction dimension, all ranks together").positive(),
      fields::element_type<&problem::type>("of A, B and C"),
      fields::partials<&problem::partials>("of partial results on their way: fp32, or as type"),
  };

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    const std::int64_t k = gemm_all_reduce::k_shard(p, world, rank);
    return shapes_of(p, {p.m, k}, {p.n, k}, {p.m, p.n});
  }
};

}  // namespace untax
