#pragma once

#include <array>

#include "ops/_skeleton/skeleton.hpp"
#include "ops/common/operand_values.hpp"
#include "ops/common/option_fields.hpp"
#include "ops/common/spec.hpp"

namespace untax {

struct operator_entry;
[[nodiscard]] operator_entry skeleton_entry();

template <>
struct spec_of<skeleton> {
  using problem = skeleton_problem;
  using options = operator_options;
  static constexpr std::string_view name = "skeleton";
  static constexpr std::string_view summary =
      "C = A x B^T complete at every rank: A is sharded by rows";
  static constexpr problem example{.m = 512, .n = 1024, .k = 768, .type = dtype::f32};
  static constexpr std::array<std::string_view, 5> without = {"pull", "panel_k", "phases",
                                                              "varying_rows", "constant_weights"};
  static constexpr auto* entry = &skeleton_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&problem::m>("m", "rows of A, of all ranks").positive(),
      fields::integer<&problem::n>("n", "columns of the result").positive(),
      fields::integer<&problem::k>("k", "columns of A").positive(),
      fields::element_type<&problem::type>("of A, B and C"),
  };
  static constexpr std::span<const field> option_fields = operator_option_fields;
  static constexpr bool sends = true;

  [[nodiscard]] static std::array<operand_shape, 3> operands(const problem& p, int world,
                                                             int rank) {
    const extent a = skeleton::a_shard(p, world, rank);
    return {{{"a", a.rows, a.cols, p.type},
             {"weights", p.n, p.k, p.type},
             {"c", p.m, p.n, p.type, operand_use::written}}};
  }
  /// Runs on the host only, where there are no streams.
  static void run(skeleton& op, const operand_values& v, stream_ref /*stream*/) {
    op.run(v.read("a"), v.read("weights"), v.written("c"));
  }
};

}  // namespace untax
