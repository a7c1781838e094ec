#pragma once

#include <array>

#include <untax/ops/gemm_all_scatter.hpp>

#include "ops/common/gemm_spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry gemm_all_scatter_entry();

template <>
struct spec_of<gemm_all_scatter> : gemm_spec<gemm_all_scatter, gemm_all_scatter_problem> {
  static constexpr std::string_view name = "gemm_all_scatter";
  static constexpr std::string_view summary =
      "C = A x B^T complete at every rank: B is sharded by columns of C";
  static constexpr std::array<std::string_view, 3> without = {"pull", "panel_k", "phases"};
  static constexpr auto* entry = &gemm_all_scatter_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&problem::m>("m", "rows of A").positive(),
      fields::integer<&problem::n>("n", "columns of the whole result").positive(),
      fields::integer<&problem::k>("k", "columns of A").positive(),
      fields::element_type<&problem::type>("of A, B and C"),
  };

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    return shapes_of(p, {p.m, p.k}, gemm_all_scatter::weights_shard(p, world, rank), {p.m, p.n});
  }
};

}  // namespace untax
