#pragma once

#include <array>
#include <vector>

#include <untax/ops/all_reduce_norm.hpp>

#include <untax/core/memory_kind.hpp>
#include "ops/common/operand_values.hpp"
#include "ops/common/option_fields.hpp"
#include "ops/common/spec.hpp"

namespace untax {

struct device_findings;
struct protocol_variant;
struct trial_subject;

template <>
struct spec_of<all_reduce_norm> {
  using problem = all_reduce_norm_problem;
  using options = operator_options;
  static constexpr std::string_view name = "all_reduce_norm";
  static constexpr std::string_view summary =
      "sum over ranks + residual, and its rows over their root mean square";
  static constexpr problem example{.tokens = 512, .hidden = 1024, .type = dtype::f32};
  static constexpr std::array<std::string_view, 5> without = {"pull", "tile_n", "panel_k",
                                                              "constant_weights", "invariant"};
  static constexpr auto output_words = fields::words_of<norm_output, 3>();
  static constexpr field problem_fields[] = {
      fields::integer<&problem::tokens>("tokens", "rows of all operands").positive(),
      fields::integer<&problem::hidden>("hidden", "elements of a row; at most 16384").positive(),
      fields::element_type<&problem::type>("of in, residual, weight and x"),
      fields::choice<&problem::output>("output", "elements of normalised rows", output_words),
      fields::real<&problem::epsilon, true>("epsilon", "added to the mean of squares; 0: 1e-5"),
  };
  static constexpr std::span<const field> option_fields = operator_option_fields;
  static constexpr bool sends = true;

  [[nodiscard]] static std::array<operand_shape, 7> operands(const problem& p, int /*world*/,
                                                             int /*rank*/) {
    const element normalised =
        p.output == norm_output::same ? static_cast<element>(p.type) : element::e4m3;
    return {{{"in", p.tokens, p.hidden, p.type},
             {"residual", p.tokens, p.hidden, p.type},
             {"weight", 1, p.hidden, p.type},
             {"x", p.tokens, p.hidden, p.type, operand_use::optional_written},
             {"out", p.tokens, p.hidden, normalised, operand_use::optional_written},
             {"scales", 1, p.tokens, dtype::f32, operand_use::optional_written},
             {"scale", 1, 1, dtype::f32, operand_use::optional_read}}};  // in host memory
  }

  static void run(all_reduce_norm& op, const operand_values& v, stream_ref stream) {
    const auto* scale = v.elements<const float>("scale");
    const norm_inputs inputs{v.read("in"), v.read("residual"), v.elements<const void>("weight"),
                             scale == nullptr ? 1 : *scale};
    const std::int64_t rows = inputs.in.rows;
    const norm_results results{v.elements<void>("x", rows), v.elements<void>("out", rows),
                               v.elements<float>("scales", 1, rows)};
    const bool own = results.x == nullptr && results.out == nullptr;
    op.run(inputs, own ? op.result() : results, stream);
  }

  /// Every pattern, with each division of the results among the ranks.
  [[nodiscard]] static std::vector<protocol_variant> variants();
  [[nodiscard]] static trial_subject subject(const problem& p, const options& o, memory_kind memory,
                                             bool uneven);
  /// Makes the plans of all ranks for GPUs of `multiprocessors`, and proves their schedule.
  [[nodiscard]] static device_findings check_on_gpus(const problem& p, int ranks, const options& o,
                                                     int multiprocessors);
  static constexpr std::string_view checked_on_gpus = "-m 64 -n 8192 -k 8 --ranks 8 --gpu h200";
};

}  // namespace untax
