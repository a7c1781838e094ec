#pragma once

#include <array>
#include <span>

#include <untax/core/matrix.hpp>
#include <untax/ops/options.hpp>
#include <untax/tile/protocol.hpp>

#include "ops/common/operand_values.hpp"
#include "ops/common/option_fields.hpp"
#include "ops/common/spec.hpp"

namespace untax {

/// The part of a spec that is common to the operators that multiply `a` by `weights` into `c`. An
/// operator with a `result()` has a C of its own, which a run takes if it is given none.
template <class Operator, class Problem>
struct gemm_spec {
  using problem = Problem;
  using options = operator_options;
  static constexpr problem example{.m = 512, .n = 1024, .k = 768, .type = dtype::f32};
  static constexpr std::span<const field> option_fields = operator_option_fields;
  static constexpr bool sends = true;

  static void run(Operator& op, const operand_values& v, stream_ref stream) {
    const const_matrix a = v.read("a");
    const const_matrix weights = v.read("weights");
    if constexpr (requires { op.result(); }) {
      if (!v.has("c")) return op.run(a, weights, stream);
    }
    if constexpr (requires { op.run(a, weights, matrix{}, stream); }) {
      op.run(a, weights, v.written("c"), stream);
    } else {  // only operators of the host, where there are no streams
      op.run(a, weights, v.written("c"));
    }
  }

 protected:
  [[nodiscard]] static std::array<operand_shape, 3> shapes_of(const problem& p, const extent& a,
                                                              const extent& weights,
                                                              const extent& c) {
    constexpr bool has_own = requires(const Operator& op) { op.result(); };
    return {{{"a", a.rows, a.cols, p.type},
             {"weights", weights.rows, weights.cols, p.type},
             {"c", c.rows, c.cols, p.type,
              has_own ? operand_use::optional_written : operand_use::written}}};
  }
};

}  // namespace untax
