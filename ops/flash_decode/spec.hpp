#pragma once

#include <array>
#include <vector>

#include <untax/ops/flash_decode.hpp>

#include <untax/core/memory_kind.hpp>
#include "ops/common/operand_values.hpp"
#include "ops/common/spec.hpp"
#include "ops/flash_decode/planning.hpp"

namespace untax {

struct protocol_variant;
struct trial_subject;

template <>
struct spec_of<flash_decode> {
  using problem = flash_decode_problem;
  using options = flash_decode_options;
  static constexpr std::string_view name = "flash_decode";
  static constexpr std::string_view summary =
      "attention of one token of each sequence to keys sharded over the ranks";
  static constexpr problem example{
      .batch = 4, .heads = 8, .kv_heads = 2, .head_dim = 64, .keys = 512, .type = dtype::f32};
  static constexpr std::array<std::string_view, 0> without{};
  static constexpr bool uneven = true;  ///< parts, or shards, of different sizes can be run
  static constexpr field problem_fields[] = {
      fields::integer<&problem::batch>("batch", "sequences").positive(),
      fields::integer<&problem::heads>("heads", "heads of the queries; a multiple of kv_heads")
          .positive(),
      fields::integer<&problem::kv_heads>("kv_heads", "heads of keys and values").positive(),
      fields::integer<&problem::head_dim>("head_dim", "elements of a head").between(1, 4096),
      fields::integer<&problem::keys>("keys", "the most keys that a rank has of one sequence"),
      fields::integer<&problem::page_size>("page_size", "rows of a page; 0: no pages"),
      fields::integer<&problem::pages>("pages", "pages of the cache of a rank, if it has pages"),
      fields::element_type<&problem::type>("of q, keys, values and the result"),
      fields::choice<&problem::partials>(
          "partials", "of partial results on their way: fp32 or bf16", fields::type_words),
      fields::real<&problem::scale>("scale", "of the logits; 0: 1 / sqrt(head_dim)"),
      fields::real<&problem::logit_cap>("logit_cap",
                                        "a logit becomes cap * tanh(logit / cap); 0: no cap"),
  };
  static constexpr field option_fields[] = {
      fields::choice<&options::how>("pattern", "a way to overlap", fields::pattern_words),
      fields::launch<&options::launch>(),
      fields::integer<&options::workers>("workers", "computing workers of a rank; on GPUs blocks")
          .between(0, 31),
      fields::integer<&options::senders>("senders", "senders of a rank, if the pattern has them")
          .between(0, 31)
          .of_host(),
      fields::integer<&options::splits>(
          "splits",
          "parts into which a rank splits its keys of a sequence; on GPUs of one rank, 8 "
          "at most")
          .between(0, 1024),
  };
  static constexpr bool sends = true;

  [[nodiscard]] static std::array<operand_shape, 6> operands(const problem& p, int /*world*/,
                                                             int /*rank*/) {
    const extent cache = cache_extent(p);
    const std::int64_t rows = p.batch * p.heads;
    return {
        {{"q", rows, p.head_dim, p.type},
         {"keys", cache.rows, cache.cols, p.type},
         {"values", cache.rows, cache.cols, p.type},
         {"out", rows, p.head_dim, p.type, operand_use::written},
         {"lengths", 1, p.batch, element::i32},
         {"page_table", p.batch, pages_of_sequence(p), element::i32, operand_use::optional_read}}};
  }

  static void run(flash_decode& op, const operand_values& v, stream_ref stream) {
    const attention_shard cache{v.read("keys"), v.read("values"),
                                v.elements<std::int32_t>("lengths"),
                                v.elements<std::int32_t>("page_table")};
    op.run(v.read("q"), cache, v.written("out"), stream);
  }

  /// Every pattern, with each division of the results among the ranks.
  [[nodiscard]] static std::vector<protocol_variant> variants();
  [[nodiscard]] static trial_subject subject(problem p, const options& o, memory_kind memory,
                                             bool uneven);
  [[nodiscard]] static bool has_gpu_kernel(const problem& p, const options& o);
};

}  // namespace untax
