#pragma once

#include <array>

#include <untax/core/memory_kind.hpp>
#include <untax/ops/linear.hpp>

#include "ops/common/operand_values.hpp"
#include "ops/common/spec.hpp"
#include "ops/linear/backend.hpp"

namespace untax {

struct trial_subject;

template <>
struct spec_of<linear> {
  using problem = linear_problem;
  using options = linear_options;
  static constexpr std::string_view name = "linear";
  static constexpr std::string_view summary =
      "a linear layer with bias and activation, each rank for itself";
  static constexpr problem example{.rows = 16, .n = 64, .k = 96, .type = dtype::f32};
  static constexpr std::array<std::string_view, 0> without{};
  static constexpr field_word activation_words[] = {{"none", 0},      {"silu", 1},   {"gelu", 2},
                                                    {"gelu_tanh", 3}, {"swiglu", 4}, {"geglu", 5}};
  static constexpr field problem_fields[] = {
      fields::integer<&problem::rows>("rows", "rows of x and out"),
      fields::integer<&problem::n>("n", "columns of out").positive(),
      fields::integer<&problem::k>("k", "columns of x").positive(),
      fields::element_type<&problem::type>("of all matrices"),
      fields::choice<&problem::activation>("activation", "the function behind the product",
                                           activation_words),
  };
  static constexpr field option_fields[] = {
      fields::flag<&options::varying_rows>(
          "varying_rows", "rows is a capacity: a run has any number of rows up to it"),
      fields::flag<&options::invariant>(
          "invariant", "rows of results have the same bits for every number of rows and place"),
      fields::flag<&options::constant_weights>("constant_weights",
                                               "no work ahead in the stream writes the weights")
          .of_gpus(),
      fields::flag<&options::library>("library", "cuBLASLt multiplies, and no kernel of untax")
          .of_gpus(),
  };
  static constexpr bool sends = false;

  [[nodiscard]] static std::array<operand_shape, 4> operands(const problem& p, int /*world*/,
                                                             int /*rank*/) {
    const std::int64_t columns = product_columns(p);
    return {{{"x", p.rows, p.k, p.type},
             {"weights", columns, p.k, p.type},
             {"bias", 1, columns, p.type, operand_use::optional_read},
             {"out", p.rows, p.n, p.type, operand_use::written}}};
  }

  static void run(linear& op, const operand_values& v, stream_ref stream) {
    op.run({.x = v.read("x"),
            .weights = v.read("weights"),
            .bias = v.elements<std::byte>("bias"),
            .out = v.written("out")},
           stream);
  }

  [[nodiscard]] static trial_subject subject(const problem& p, const options& o, memory_kind memory,
                                             bool uneven);
  [[nodiscard]] static bool has_gpu_kernel(const problem& p, const options& o);
};

}  // namespace untax
