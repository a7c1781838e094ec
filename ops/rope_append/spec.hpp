#pragma once

#include <array>

#include <untax/ops/rope_append.hpp>

#include <untax/core/memory_kind.hpp>
#include "ops/common/operand_values.hpp"
#include "ops/common/spec.hpp"
#include "ops/rope_append/backend.hpp"

namespace untax {

struct trial_subject;

template <>
struct spec_of<rope_append> {
  using problem = rope_append_problem;
  using options = rope_append_options;
  static constexpr std::string_view name = "rope_append";
  static constexpr std::string_view summary =
      "bias, norm of heads, RoPE and append to a cache, each rank for itself";
  static constexpr problem example{.tokens = 64,
                                   .heads = 8,
                                   .kv_heads = 2,
                                   .head_dim = 64,
                                   .batch = 4,
                                   .keys = 128,
                                   .positions = 128,
                                   .type = dtype::f32};
  static constexpr std::array<std::string_view, 0> without{};
  static constexpr field problem_fields[] = {
      fields::integer<&problem::tokens>("tokens", "rows of qkv"),
      fields::integer<&problem::heads>("heads", "heads of the queries").positive(),
      fields::integer<&problem::kv_heads>("kv_heads", "heads of keys and values").positive(),
      fields::integer<&problem::head_dim>("head_dim", "elements of a head").between(2, 4096),
      fields::integer<&problem::rotated>(
          "rotated", "the first elements of a head, which are rotated; even; 0: all")
          .between(0, 4096),
      fields::integer<&problem::batch>("batch", "sequences").positive(),
      fields::integer<&problem::keys>("keys", "the most keys of a sequence").positive(),
      fields::integer<&problem::page_size>("page_size", "rows of a page; 0: no pages"),
      fields::integer<&problem::pages>("pages", "pages of the cache, if it has pages"),
      fields::integer<&problem::positions>("positions", "rows of the table of rotations")
          .positive(),
      fields::element_type<&problem::type>("of all matrices and weights; rotations are fp32"),
      fields::flag<&problem::interleaved>("interleaved",
                                          "elements 2i and 2i + 1 are a pair, not i and "
                                          "i + rotated / 2"),
      fields::flag<&problem::bias>("bias", "qkv has a bias"),
      fields::flag<&problem::norm>("norm",
                                   "heads of q and k are divided by their root mean square"),
      fields::real<&problem::norm_offset>("norm_offset", "added to the weights of the norm"),
      fields::real<&problem::epsilon, true>("epsilon", "added to the mean of squares; 0: 1e-6"),
  };
  static constexpr field option_fields[] = {
      fields::flag<&options::varying_tokens>(
          "varying_tokens", "tokens is a capacity: a run has any number of tokens up to it"),
      fields::flag<&options::constant_weights>(
          "constant_weights", "no work ahead in the stream writes bias and weights of the norm")
          .of_gpus(),
  };
  static constexpr bool sends = false;

  [[nodiscard]] static std::array<operand_shape, 11> operands(const problem& p, int /*world*/,
                                                              int /*rank*/) {
    const extent cache = cache_extent(p);
    const std::int64_t rotated = p.rotated == 0 ? p.head_dim : p.rotated;
    return {
        {{"qkv", p.tokens, qkv_columns(p), p.type},
         {"bias", 1, qkv_columns(p), p.type, operand_use::optional_read},
         {"q_norm", 1, p.head_dim, p.type, operand_use::optional_read},
         {"k_norm", 1, p.head_dim, p.type, operand_use::optional_read},
         {"rotations", p.positions, rotated, dtype::f32},
         {"position", 1, p.tokens, element::i32},
         {"sequence", 1, p.tokens, element::i32, operand_use::optional_read},
         {"page_table", p.batch, pages_of_sequence(p), element::i32, operand_use::optional_read},
         {"keys", cache.rows, cache.cols, p.type, operand_use::written},
         {"values", cache.rows, cache.cols, p.type, operand_use::written},
         {"q", p.tokens, p.heads * p.head_dim, p.type, operand_use::written}}};
  }

  static void run(rope_append& op, const operand_values& v, stream_ref stream) {
    const const_matrix qkv = v.read("qkv");
    op.run({.qkv = qkv,
            .bias = v.elements<const void>("bias"),
            .q_norm = v.elements<const void>("q_norm"),
            .k_norm = v.elements<const void>("k_norm"),
            .rotations = v.elements<const float>("rotations"),
            .position = v.elements<const std::int32_t>("position", 1, qkv.rows),
            .sequence = v.elements<const std::int32_t>("sequence", 1, qkv.rows),
            .page_table = v.elements<const std::int32_t>("page_table"),
            .keys = v.written("keys"),
            .values = v.written("values"),
            .q = v.written("q")},
           stream);
  }

  [[nodiscard]] static trial_subject subject(problem p, const options& o, memory_kind memory,
                                             bool uneven);
  [[nodiscard]] static bool has_gpu_kernel(const problem& p, const options& o);
};

}  // namespace untax
