#pragma once

#include <array>

#include <untax/ops/gemm_all_scatter.hpp>

#include "ops/common/operand_values.hpp"
#include "ops/common/option_fields.hpp"
#include "ops/common/spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry gemm_all_scatter_entry();

template <>
struct spec_of<gemm_all_scatter> {
  using problem = gemm_all_scatter_problem;
  using options = operator_options;
  static constexpr std::string_view name = "gemm_all_scatter";
  static constexpr std::string_view summary =
      "C = A x B^T complete at every rank: B is sharded by columns of C";
  static constexpr problem example{.m = 512, .n = 1024, .k = 768, .type = dtype::f32};
  static constexpr std::array<std::string_view, 3> without = {"pull", "panel_k", "phases"};
  static constexpr auto* entry = &gemm_all_scatter_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&problem::m>("m", "rows of A").positive(),
      fields::integer<&problem::n>("n", "columns of the whole result").positive(),
      fields::integer<&problem::k>("k", "columns of A").positive(),
      fields::element_type<&problem::type>("of A, B and C"),
  };
  static constexpr std::span<const field> option_fields = operator_option_fields;
  static constexpr bool sends = true;

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    const extent weights = gemm_all_scatter::weights_shard(p, world, rank);
    return {{{"a", p.m, p.k, p.type},
             {"weights", weights.rows, weights.cols, p.type},
             {"c", p.m, p.n, p.type, operand_use::optional_written}}};
  }

  static void run(gemm_all_scatter& op, const operand_values& v, stream_ref stream) {
    op.run(v.read("a"), v.read("weights"), v.has("c") ? v.written("c") : op.result(), stream);
  }
};

}  // namespace untax
