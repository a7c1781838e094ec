#pragma once

#include <array>
#include <vector>

#include <untax/ops/merge_partial_attention.hpp>

#include <untax/core/memory_kind.hpp>
#include "ops/common/operand_values.hpp"
#include "ops/common/spec.hpp"

namespace untax {

struct device_findings;
struct protocol_variant;
struct trial_subject;

template <>
struct spec_of<merge_partial_attention> {
  using problem = merge_partial_attention_problem;
  using options = merge_partial_attention_options;
  static constexpr std::string_view name = "merge_partial_attention";
  static constexpr std::string_view summary =
      "partial results of attention of all ranks, merged by their logarithms";
  static constexpr problem example{.tokens = 4, .heads = 8, .head_dim = 64, .type = dtype::f32};
  static constexpr std::array<std::string_view, 0> without{};
  static constexpr field problem_fields[] = {
      fields::integer<&problem::tokens>("tokens", "tokens whose attention is merged").positive(),
      fields::integer<&problem::heads>("heads", "heads of a token").positive(),
      fields::integer<&problem::head_dim>("head_dim", "elements of a head").between(1, 4096),
      fields::element_type<&problem::type>("of partial_o and out; logarithms are fp32"),
      fields::flag<&problem::get>("own_heads", "a rank gets its ceil(heads / W), not all heads"),
      fields::flag<&problem::log2>("log2", "logarithms are to base 2, else natural"),
  };
  static constexpr field option_fields[] = {
      fields::choice<&options::how>("pattern", "a way to overlap", fields::pattern_words),
      fields::launch<&options::launch>(),
      fields::integer<&options::workers>("workers", "workers of a rank that merge; on GPUs blocks")
          .between(0, 31),
      fields::integer<&options::senders>("senders", "senders of a rank, if the pattern has them")
          .between(0, 31)
          .of_host(),
      fields::flag<&options::varying_tokens>(
          "varying_tokens", "tokens is a capacity: a run has any number of tokens up to it"),
  };
  static constexpr bool sends = true;

  [[nodiscard]] static std::array<operand_shape, 4> operands(const problem& p, int world,
                                                             int rank) {
    const std::int64_t own = merge_partial_attention::heads_of(p, world, rank).size;
    return {{{"partial_o", p.tokens * p.heads, p.head_dim, p.type},
             {"partial_lse", p.tokens, p.heads, dtype::f32},
             {"out", p.tokens * own, p.head_dim, p.type, operand_use::written},
             {"lse", p.tokens, own, dtype::f32, operand_use::written}}};
  }

  static void run(merge_partial_attention& op, const operand_values& v, stream_ref stream) {
    op.run(v.read("partial_o"), v.read("partial_lse"), v.written("out"), v.written("lse"), stream);
  }

  /// Every pattern, with each division of the results among the ranks.
  [[nodiscard]] static std::vector<protocol_variant> variants();
  [[nodiscard]] static trial_subject subject(const problem& p, const options& o, memory_kind memory,
                                             bool uneven);
  [[nodiscard]] static bool has_gpu_kernel(const problem& p, const options& o);
  /// Makes the plans of all ranks for GPUs of `multiprocessors`, and proves their schedule.
  [[nodiscard]] static device_findings check_on_gpus(const problem& p, int ranks, const options& o,
                                                     int multiprocessors);
  static constexpr std::string_view checked_on_gpus =
      "-m 16 -n 32 -k 128 --ranks 4 --gpu h200 --own-heads";
};

}  // namespace untax
