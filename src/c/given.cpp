#include "given.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

#include <untax/core/error.hpp>

#include "reading.hpp"

namespace untax::c {
namespace {

/// The default epsilon. A problem whose epsilon is 0 gets it.
constexpr float usual_epsilon = all_reduce_norm_problem{}.epsilon;

/// Empty for partial results in the type of the problem. Throws `invalid_argument`.
std::optional<dtype> partials_of(std::int32_t given) {
  if (given == untax_partials_of_type) return std::nullopt;
  if (given == untax_partials_f32) return dtype::f32;
  return type_of("partials", given);
}

reduction reduction_of(std::int32_t given) {
  static_assert(static_cast<int>(reduction::min) == untax_min);
  return chosen("reduction", given, reduction::min);
}

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

all_gather_gemm_problem problem_of(const untax_all_gather_gemm_problem* given) {
  const auto p = taken(given, "untax_all_gather_gemm_problem");
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .type = type_of("type", p.type),
          .gather = p.gather_k != 0 ? gather_axis::k : gather_axis::rows};
}

gemm_all_scatter_problem problem_of(const untax_gemm_all_scatter_problem* given) {
  const auto p = taken(given, "untax_gemm_all_scatter_problem");
  return {.m = p.m, .n = p.n, .k = p.k, .type = type_of("type", p.type)};
}

gemm_reduce_scatter_problem problem_of(const untax_gemm_reduce_scatter_problem* given) {
  const auto p = taken(given, "untax_gemm_reduce_scatter_problem");
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .type = type_of("type", p.type),
          .partials = partials_of(p.partials)};
}

gemm_all_reduce_problem problem_of(const untax_gemm_all_reduce_problem* given) {
  const auto p = taken(given, "untax_gemm_all_reduce_problem");
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .type = type_of("type", p.type),
          .partials = partials_of(p.partials)};
}

all_reduce_norm_problem problem_of(const untax_all_reduce_norm_problem* given) {
  const auto p = taken(given, "untax_all_reduce_norm_problem");
  return {.tokens = p.tokens,
          .hidden = p.hidden,
          .type = type_of("type", p.type),
          .output = chosen("output", p.output, norm_output::e4m3_per_token),
          .epsilon = p.epsilon == 0 ? usual_epsilon : p.epsilon};
}

flash_attention_problem problem_of(const untax_flash_attention_problem* given) {
  const auto p = taken(given, "untax_flash_attention_problem");
  return {.batch = p.batch,
          .heads = p.heads,
          .kv_heads = p.kv_heads,
          .head_dim = p.head_dim,
          .queries = p.queries,
          .keys = p.keys,
          .causal = p.causal != 0,
          .type = type_of("type", p.type),
          .scale = p.scale};
}

flash_decode_problem problem_of(const untax_flash_decode_problem* given) {
  const auto p = taken(given, "untax_flash_decode_problem");
  return {.batch = p.batch,
          .heads = p.heads,
          .kv_heads = p.kv_heads,
          .head_dim = p.head_dim,
          .keys = p.keys,
          .page_size = p.page_size,
          .pages = p.pages,
          .type = type_of("type", p.type),
          .partials = type_of("partials", p.partials),
          .scale = p.scale,
          .logit_cap = p.logit_cap};
}

merge_partial_attention_problem problem_of(const untax_merge_partial_attention_problem* given) {
  const auto p = taken(given, "untax_merge_partial_attention_problem");
  return {.tokens = p.tokens,
          .heads = p.heads,
          .head_dim = p.head_dim,
          .type = type_of("type", p.type),
          .get = chosen("own_heads", p.own_heads, merged_heads::own),
          .log2 = p.log2 != 0};
}

all_gather_problem problem_of(const untax_all_gather_problem* given) {
  const auto p = taken(given, "untax_all_gather_problem");
  return {.count = p.count, .type = type_of("type", p.type)};
}

reduce_scatter_problem problem_of(const untax_reduce_scatter_problem* given) {
  const auto p = taken(given, "untax_reduce_scatter_problem");
  return {.count = p.count, .type = type_of("type", p.type), .how = reduction_of(p.reduction)};
}

all_reduce_problem problem_of(const untax_all_reduce_problem* given) {
  const auto p = taken(given, "untax_all_reduce_problem");
  return {.count = p.count, .type = type_of("type", p.type), .how = reduction_of(p.reduction)};
}

all_to_all_problem problem_of(const untax_all_to_all_problem* given) {
  const auto p = taken(given, "untax_all_to_all_problem");
  if (p.counts_size < 0) {
    throw error(errc::invalid_argument,
                fmt::format("counts_size is {}; it is 0, or the square of the number "
                            "of ranks",
                            p.counts_size));
  }
  if (p.counts_size > 0) require(p.counts, "counts");
  return {.count = p.count,
          .type = type_of("type", p.type),
          .counts = {p.counts, p.counts + p.counts_size}};
}

broadcast_problem problem_of(const untax_broadcast_problem* given) {
  const auto p = taken(given, "untax_broadcast_problem");
  return {.count = p.count, .type = type_of("type", p.type), .root = p.root};
}

operator_options options_of(const untax_operator_options* given) {
  const auto o = taken_if_given(given, "untax_operator_options");
  return {.how = pattern_of(o.pattern),
          .move = o.pull != 0 ? direction::pull : direction::push,
          .launch = launch_of(o.eager),
          .workers = o.workers,
          .senders = o.senders,
          .phases = o.phases,
          .varying_rows = o.varying_rows != 0,
          .invariant = o.invariant != 0,
          .constant_weights = o.constant_weights != 0,
          .tile_m = o.tile_m,
          .tile_n = o.tile_n,
          .panel_k = o.panel_k};
}

flash_decode_options options_of(const untax_flash_decode_options* given) {
  const auto o = taken_if_given(given, "untax_flash_decode_options");
  return {.how = pattern_of(o.pattern),
          .launch = launch_of(o.eager),
          .workers = o.workers,
          .senders = o.senders,
          .splits = o.splits};
}

merge_partial_attention_options options_of(const untax_merge_partial_attention_options* given) {
  const auto o = taken_if_given(given, "untax_merge_partial_attention_options");
  return {.how = pattern_of(o.pattern),
          .launch = launch_of(o.eager),
          .workers = o.workers,
          .senders = o.senders,
          .varying_tokens = o.varying_tokens != 0};
}

order::attention_order options_of(const untax_flash_attention_options* given) {
  const auto o = taken_if_given(given, "untax_flash_attention_options");
  static_assert(static_cast<int>(order::attention_order::sections) == untax_attention_sections);
  return chosen("order", o.order, order::attention_order::sections);
}

collective_options options_of(const untax_collective_options* given) {
  const auto o = taken_if_given(given, "untax_collective_options");
  return {.how = pattern_of(o.pattern),
          .phases = o.phases,
          .launch = launch_of(o.eager),
          .wire = chosen("wire", o.wire, wire_kind::packets),
          .workers = o.workers,
          .varying_count = o.varying_count != 0,
          .chunk_bytes = o.chunk_bytes,
          .depth = o.depth,
          .direct = o.direct != 0,
          .inputs = chosen("inputs", o.inputs, input_path::rooms)};
}

world_options options_of(const untax_world_options* given) {
  const auto o = taken_if_given(given, "untax_world_options");
  world_options made;
  if (o.heap_bytes > 0) made.heap_bytes = o.heap_bytes;
  made.memory = memory_of(o.memory);
  if (o.ranks_per_gpu != 0) made.ranks_per_gpu = o.ranks_per_gpu;
  if (o.gpu != 0) made.device = o.gpu - 1;
  if (o.heap_guards != 0) made.heap_guards = o.heap_guards > 0;
  made.wait_limit = limit_of(o.wait_limit_ms);
  made.join_limit = limit_of(o.join_limit_ms);
  return made;
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
