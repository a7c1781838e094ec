#pragma once

#include <array>

#include "ops/_skeleton/skeleton.hpp"
#include "ops/common/gemm_spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry skeleton_entry();

template <>
struct spec_of<skeleton> : gemm_spec<skeleton, skeleton_problem> {
  static constexpr std::string_view name = "skeleton";
  static constexpr std::string_view summary =
      "C = A x B^T complete at every rank: A is sharded by rows";
  static constexpr std::array<std::string_view, 5> without = {"pull", "panel_k", "phases",
                                                              "varying_rows", "constant_weights"};
  static constexpr auto* entry = &skeleton_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&problem::m>("m", "rows of A, of all ranks").positive(),
      fields::integer<&problem::n>("n", "columns of the result").positive(),
      fields::integer<&problem::k>("k", "columns of A").positive(),
      fields::element_type<&problem::type>("of A, B and C"),
  };

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    return shapes_of(p, skeleton::a_shard(p, world, rank), {p.n, p.k}, {p.m, p.n});
  }
};

}  // namespace untax
