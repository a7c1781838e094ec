#pragma once

#include <array>

#include <untax/ops/flash_attention.hpp>

#include "ops/common/operand_values.hpp"
#include "ops/common/spec.hpp"

namespace untax {

template <>
struct spec_of<flash_attention> {
  using problem = flash_attention_problem;
  using options = flash_attention_options;
  static constexpr std::string_view name = "flash_attention";
  static constexpr std::string_view summary =
      "attention of all queries of some sequences, each rank for itself";
  static constexpr problem example{.batch = 2,
                                   .heads = 8,
                                   .kv_heads = 2,
                                   .head_dim = 64,
                                   .queries = 128,
                                   .keys = 128,
                                   .type = dtype::f32};
  static constexpr std::array<std::string_view, 0> without{};
  static constexpr field problem_fields[] = {
      fields::integer<&problem::batch>("batch", "sequences").positive(),
      fields::integer<&problem::heads>("heads", "heads of the queries; a multiple of kv_heads")
          .positive(),
      fields::integer<&problem::kv_heads>("kv_heads", "heads of keys and values").positive(),
      fields::integer<&problem::head_dim>("head_dim", "elements of a head").between(1, 4096),
      fields::integer<&problem::queries>("queries",
                                         "queries of a sequence; the most if lengths differ")
          .positive(),
      fields::integer<&problem::keys>("keys", "keys of a sequence; the most if lengths differ"),
      fields::element_type<&problem::type>("of all matrices"),
      fields::flag<&problem::causal>("causal", "the last query sees all keys, the next one less"),
      fields::real<&problem::scale>("scale", "of the logits; 0: 1 / sqrt(head_dim)"),
  };
  static constexpr field_word order_words[] = {
      {"automatic", 0}, {"head_first", 1}, {"block_first", 2}, {"group_first", 3}, {"sections", 4}};
  static constexpr field option_fields[] = {
      fields::choice<&options::order>("order", "of blocks", order_words).of_gpus(),
  };
  static constexpr bool sends = false;

  [[nodiscard]] static std::array<operand_shape, 7> operands(const problem& p, int /*world*/,
                                                             int /*rank*/) {
    const std::int64_t queries = p.batch * p.queries;
    const std::int64_t keys = p.batch * p.keys;
    return {{{"q", queries, p.heads * p.head_dim, p.type},
             {"keys", keys, p.kv_heads * p.head_dim, p.type},
             {"values", keys, p.kv_heads * p.head_dim, p.type},
             {"log_sums", queries, p.heads, dtype::f32, operand_use::optional_written},
             {"query_begins", 1, p.batch + 1, element::i32, operand_use::optional_read},
             {"key_begins", 1, p.batch + 1, element::i32, operand_use::optional_read},
             {"out", queries, p.heads * p.head_dim, p.type, operand_use::written}}};
  }

  static void run(flash_attention& op, const operand_values& v, stream_ref stream) {
    const const_matrix q = v.read("q");
    op.run({.q = q,
            .keys = v.read("keys"),
            .values = v.read("values"),
            .out = v.written("out"),
            .log_sums = v.elements<float>("log_sums", q.rows),
            .query_begins = v.elements<std::int32_t>("query_begins"),
            .key_begins = v.elements<std::int32_t>("key_begins")},
           stream);
  }
};

}  // namespace untax
