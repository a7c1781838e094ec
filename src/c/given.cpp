#include "given.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

#include <untax/core/error.hpp>

#include "reading.hpp"

namespace untax::c {
namespace {

std::optional<std::chrono::milliseconds> limit_of(std::int64_t ms) {
  if (ms == 0) return std::nullopt;
  return std::chrono::milliseconds(ms < 0 ? 0 : ms);
}

std::optional<memory_kind> memory_of(std::int32_t given) {
  constexpr memory_kind kinds[] = {memory_kind::host, memory_kind::cuda, memory_kind::automatic};
  const auto wish = chosen("memory", given, untax_memory_automatic);
  if (wish == untax_memory_default) return std::nullopt;
  return kinds[wish - 1];
}

}  // namespace

world_options options_of(const untax_world_options* given) {
  const auto o = taken_if_given(given, "untax_world_options");
  world_options options;
  if (o.heap_bytes > 0) options.heap_bytes = o.heap_bytes;
  options.memory = memory_of(o.memory);
  if (o.ranks_per_gpu != 0) options.ranks_per_gpu = o.ranks_per_gpu;
  if (o.gpu != 0) options.device = o.gpu - 1;
  if (o.heap_guards != 0) options.heap_guards = o.heap_guards > 0;
  options.wait_limit = limit_of(o.wait_limit_ms);
  options.join_limit = limit_of(o.join_limit_ms);
  return options;
}

decoder_options options_of(const untax_decoder_options* given) {
  const auto o = taken_if_given(given, "untax_decoder_options");
  decoder_options options;
  const auto set = [](std::int64_t& value, std::int64_t number) {
    if (number != 0) value = number;
  };
  set(options.sequences, o.sequences);
  set(options.tokens, o.tokens);
  set(options.page_size, o.page_size);
  set(options.pages, o.pages);
  set(options.prompt_tokens, o.prompt_tokens);
  set(options.prompt_keys, o.prompt_keys);
  options.logits = o.logits != 0;
  options.graphs = o.graphs != 0;
  options.invariant = o.invariant != 0;
  return options;
}

flash_attention_operands operands_of(const untax_attention_arguments* given) {
  require(given, "arguments");
  const auto a = taken(given, "untax_attention_arguments");
  return {.q = matrix_of("q", a.q),
          .keys = matrix_of("keys", a.keys),
          .values = matrix_of("values", a.values),
          .out = matrix_of("out", a.out),
          .log_sums = a.log_sums,
          .query_begins = a.query_begins,
          .key_begins = a.key_begins};
}

linear_operands operands_of(const untax_linear_arguments* given) {
  require(given, "arguments");
  const auto a = taken(given, "untax_linear_arguments");
  return {.x = matrix_of("x", a.x),
          .weights = matrix_of("weights", a.weights),
          .bias = a.bias,
          .out = matrix_of("out", a.out)};
}

rope_append_operands operands_of(const untax_rope_append_arguments* given) {
  require(given, "arguments");
  const auto a = taken(given, "untax_rope_append_arguments");
  return {.qkv = matrix_of("qkv", a.qkv),
          .bias = a.bias,
          .q_norm = a.q_norm,
          .k_norm = a.k_norm,
          .rotations = a.rotations,
          .position = a.position,
          .sequence = a.sequence,
          .page_table = a.page_table,
          .keys = matrix_of("keys", a.keys),
          .values = matrix_of("values", a.values),
          .q = matrix_of("q", a.q)};
}

norm_inputs inputs_of(const untax_norm_arguments* given) {
  require(given, "arguments");
  const auto a = taken(given, "untax_norm_arguments");
  return {matrix_of("in", a.in), matrix_of("residual", a.residual), a.weight,
          a.scale == 0 ? 1 : a.scale};
}

norm_results results_of(const untax_norm_arguments* given) {
  require(given, "arguments");
  const auto a = taken(given, "untax_norm_arguments");
  return {a.x, a.out, a.scales};
}

}  // namespace untax::c
