#pragma once

#include <array>

#include <untax/ops/all_gather_gemm.hpp>

#include "ops/common/operand_values.hpp"
#include "ops/common/option_fields.hpp"
#include "ops/common/spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry all_gather_gemm_entry();

template <>
struct spec_of<all_gather_gemm> {
  using problem = all_gather_gemm_problem;
  using options = operator_options;
  static constexpr std::string_view name = "all_gather_gemm";
  static constexpr std::string_view summary =
      "C_r = gather(A) x B_r^T: A is sharded by rows or by k";
  static constexpr problem example{.m = 512, .n = 1024, .k = 768, .type = dtype::f32};
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
  static constexpr std::span<const field> option_fields = operator_option_fields;
  static constexpr bool sends = true;

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    const extent a = all_gather_gemm::a_shard(p, world, rank);
    return {{{"a", a.rows, a.cols, p.type},
             {"weights", p.n, p.k, p.type},
             {"c", p.m, p.n, p.type, operand_use::written}}};
  }

  static void run(all_gather_gemm& op, const operand_values& v, stream_ref stream) {
    op.run(v.read("a"), v.read("weights"), v.written("c"), stream);
  }
};

}  // namespace untax
