#pragma once

#include <array>

#include <untax/ops/gemm_reduce_scatter.hpp>

#include "ops/common/operand_values.hpp"
#include "ops/common/option_fields.hpp"
#include "ops/common/spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry gemm_reduce_scatter_entry();

template <>
struct spec_of<gemm_reduce_scatter> {
  using problem = gemm_reduce_scatter_problem;
  using options = operator_options;
  static constexpr std::string_view name = "gemm_reduce_scatter";
  static constexpr std::string_view summary =
      "rows of sum_r A_r x B_r^T: k is sharded, the sum is bitwise reproducible";
  static constexpr problem example{.m = 512, .n = 1024, .k = 768, .type = dtype::f32};
  static constexpr std::array<std::string_view, 3> without = {"pull", "panel_k", "phases"};
  static constexpr auto* entry = &gemm_reduce_scatter_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&problem::m>("m", "rows of A, of all ranks").positive(),
      fields::integer<&problem::n>("n", "columns of the result").positive(),
      fields::integer<&problem::k>("k", "the reduction dimension, all ranks together").positive(),
      fields::element_type<&problem::type>("of A, B and C"),
      fields::partials<&problem::partials>("of partial results on their way: fp32, or as type"),
  };
  static constexpr std::span<const field> option_fields = operator_option_fields;
  static constexpr bool sends = true;

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    const std::int64_t k = gemm_reduce_scatter::k_shard(p, world, rank);
    const extent c = gemm_reduce_scatter::c_shard(p, world, rank);
    return {{{"a", p.m, k, p.type},
             {"weights", p.n, k, p.type},
             {"c", c.rows, c.cols, p.type, operand_use::written}}};
  }

  static void run(gemm_reduce_scatter& op, const operand_values& v, stream_ref stream) {
    op.run(v.read("a"), v.read("weights"), v.written("c"), stream);
  }
};

}  // namespace untax
