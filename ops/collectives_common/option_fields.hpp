#pragma once

#include <untax/ops/collective_problems.hpp>

#include "ops/common/operand_values.hpp"
#include "ops/common/spec.hpp"

namespace untax {

namespace fields {
inline constexpr auto reduction_words = words_of<reduction, 3>();
inline constexpr auto wire_words = words_of<wire_kind, 4>();
inline constexpr auto input_words = words_of<input_path, 3>();
}  // namespace fields

/// The fields of `collective_options` that callers set.
inline constexpr field collective_option_fields[] = {
    fields::choice<&collective_options::how>("pattern", "a way to overlap", fields::pattern_words),
    fields::integer<&collective_options::phases>("phases",
                                                 "1: straight to all ranks; 2: by way of one rank")
        .between(0, 2),
    fields::launch<&collective_options::launch>(),
    fields::choice<&collective_options::wire>("wire", "stores between GPUs", fields::wire_words)
        .of_gpus(),
    fields::integer<&collective_options::workers>("workers", "workers of a rank; on GPUs blocks")
        .between(0, 31),
    fields::integer<&collective_options::depth>(
        "depth", "rooms used in turn for the chunks between two workers"),
    fields::integer<&collective_options::chunk_bytes>("chunk_bytes",
                                                      "the most bytes that are sent as a whole"),
    fields::flag<&collective_options::direct>(
        "direct", "memory that peers access is symmetric, at the same offset at all ranks"),
    fields::choice<&collective_options::inputs>(
        "inputs", "inputs of reductions with direct: read in place, or sent through rooms",
        fields::input_words),
    fields::flag<&collective_options::varying_count>(
        "varying_count", "count is a capacity: a run has any count up to it"),
};

/// The part of a spec that all collectives have in common.
template <class Operator, class Problem, operand_use input_use = operand_use::read>
struct collective_spec {
  using problem = Problem;
  using options = collective_options;
  static constexpr std::span<const field> option_fields = collective_option_fields;
  static constexpr bool sends = true;
  [[nodiscard]] static std::array<operand_shape, 2> operands(const problem& p, int world,
                                                             int rank) {
    return {{{"in", 1, Operator::in_count(p, world, rank), p.type, input_use},
             {"out", 1, Operator::out_count(p, world, rank), p.type, operand_use::written}}};
  }
  static void run(Operator& op, const operand_values& v, stream_ref stream) {
    op.run(v.has("in") ? v.read_array("in") : const_array_view{}, v.written_array("out"), stream);
  }
};

}  // namespace untax
