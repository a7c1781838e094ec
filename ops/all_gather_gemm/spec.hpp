#pragma once

#include <array>

#include <untax/ops/all_gather_gemm.hpp>

#include "ops/common/gemm_spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry all_gather_gemm_entry();

template <>
struct spec_of<all_gather_gemm> : gemm_spec<all_gather_gemm, all_gather_gemm_problem> {
  static constexpr std::string_view name = "all_gather_gemm";
  static constexpr std::string_view summary =
      "C_r = gather(A) x B_r^T: A is sharded by rows or by k";
  static constexpr std::array<std::string_view, 1> without = {"phases"};
  static constexpr auto* entry = &all_gather_gemm_entry;
  static constexpr field_word gather_words[] = {{"rows", 0}, {"k", 1}};
  static constexpr field problem_fields[] = {
      fields::integer<&problem::m>("m", "rows of the gathered A").positive(),
      fields::integer<&problem::n>("n", "columns of the result of one rank").positive(),
      fields::integer<&problem::k>("k", "columns of the gathered A").positive(),
      fields::element_type<&problem::type>("of A, B and C"),
      fields::flag<&problem::gather>("gather_k", "the dimension of A that is sharded",
                                     gather_words),
  };

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    return shapes_of(p, all_gather_gemm::a_shard(p, world, rank), {p.n, p.k}, {p.m, p.n});
  }
};

}  // namespace untax
