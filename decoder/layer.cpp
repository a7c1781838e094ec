#include <untax/decoder/layer.hpp>

#include <cstddef>
#include <utility>

#include "decoder/operators.hpp"

namespace untax {
namespace {

/// The sum over ranks of `partial` on top of the residual stream, normalised for what follows.
layer_state add(decoder_operators& d, const matrix& partial, const layer_state& state,
                const void* post_norm, const void* next_norm, stream_ref stream) {
  if (post_norm == nullptr) {
    return d.add_and_normalise(as_const(partial), as_const(state.x), next_norm, stream);
  }
  const matrix nothing = d.view(d.zeros, partial.rows, partial.cols);
  const matrix normed =
      d.add_and_normalise(as_const(partial), as_const(nothing), post_norm, stream).normed;
  d.residual_norm->run({.in = as_const(normed), .residual = as_const(state.x), .weight = next_norm},
                       stream);
  return d.state_of(*d.residual_norm, partial.rows);
}

}  // namespace

decoder_layer::decoder_layer(std::shared_ptr<decoder_operators> operators, std::int64_t layer,
                             const decoder_layer_weights& weights, const layer_cache& cache)
    : operators_(std::move(operators)), layer_(layer), weights_(weights), cache_(cache) {}

layer_state decoder_layer::run(const layer_tokens& tokens, const layer_state& state,
                               const void* next_norm, stream_ref stream) {
  decoder_operators& d = *operators_;
  const std::int64_t rows = tokens.rows;
  const std::int64_t heads = d.share.heads.size() * d.config.head_dim;
  const std::int64_t kv_heads = d.share.kv_heads.size() * d.config.head_dim;
  const matrix projected = d.view(d.projected, rows, heads + 2 * kv_heads);
  d.qkv.run(
      {.x = as_const(state.normed), .weights = weights_.qkv, .bias = nullptr, .out = projected},
      stream);
  const bool local = d.config.windows[static_cast<std::size_t>(layer_)] > 0;
  d.rope.run(
      {.qkv = as_const(projected),
       .bias = weights_.qkv_bias,
       .q_norm = weights_.q_norm,
       .k_norm = weights_.k_norm,
       .rotations = static_cast<const float*>((local ? d.local_rotations : d.rotations).get()),
       .position = tokens.positions,
       .sequence = tokens.sequences,
       .page_table = tokens.page_table,
       .keys = cache_.keys,
       .values = cache_.values,
       .q = d.view(d.q, rows, heads)},
      stream);
  attend(tokens, stream);

  const matrix partial = d.view(d.partial, rows, d.config.hidden);
  d.output.run({.x = as_const(d.view(d.attended, rows, heads)),
                .weights = weights_.output,
                .bias = weights_.output_bias,
                .out = partial},
               stream);
  const layer_state middle =
      add(d, partial, state, weights_.attention_post_norm, weights_.mlp_norm, stream);
  const matrix activated = d.view(d.activated, rows, d.share.intermediate.size());
  d.gate_up.run({.x = as_const(middle.normed),
                 .weights = weights_.gate_up,
                 .bias = weights_.gate_up_bias,
                 .out = activated},
                stream);
  d.down.run({.x = as_const(activated),
              .weights = weights_.down,
              .bias = weights_.down_bias,
              .out = partial},
             stream);
  return add(d, partial, middle, weights_.mlp_post_norm, next_norm, stream);
}

void decoder_layer::attend(const layer_tokens& tokens, stream_ref stream) {
  decoder_operators& d = *operators_;
  const std::int64_t width = d.share.heads.size() * d.config.head_dim;
  if (d.window > 0 && d.config.windows[static_cast<std::size_t>(layer_)] > 0) {
    attend_each(tokens.rows, static_cast<const std::int32_t*>(d.window_lengths.get()),
                static_cast<const std::int32_t*>(d.window_rows.get()), true, stream);
    return;
  }
  if (tokens.lengths != nullptr) {
    attend_each(tokens.rows, tokens.lengths, tokens.page_table, false, stream);
    return;
  }
  if (d.config.attention_cap > 0) {
    attend_each(tokens.rows, tokens.token_lengths, tokens.token_pages, false, stream);
    return;
  }
  const std::int64_t kv_width = d.share.kv_heads.size() * d.config.head_dim;
  const matrix keys = d.view(d.gathered_keys, tokens.keys, kv_width);
  const matrix values = d.view(d.gathered_values, tokens.keys, kv_width);
  d.backend->gather_rows(as_const(cache_.keys), tokens.key_rows, keys, stream);
  d.backend->gather_rows(as_const(cache_.values), tokens.key_rows, values, stream);
  d.prompt_attention(tokens).run({.q = as_const(d.view(d.q, tokens.rows, width)),
                                  .keys = as_const(keys),
                                  .values = as_const(values),
                                  .out = d.view(d.attended, tokens.rows, width),
                                  .query_begins = tokens.query_begins,
                                  .key_begins = tokens.key_begins},
                                 stream);
}

void decoder_layer::attend_each(std::int64_t rows, const std::int32_t* lengths,
                                const std::int32_t* pages, bool in_window, stream_ref stream) {
  decoder_operators& d = *operators_;
  const std::int64_t head_dim = d.config.head_dim;
  const std::int64_t heads = d.share.heads.size();
  const auto elements = static_cast<std::size_t>(heads * head_dim) * size_of(d.config.type);
  const std::int64_t pages_of_row = in_window ? d.window : d.sequence_pages();
  for (std::int64_t row = 0; row < rows;) {
    const auto [batch, attention] = d.step_attention(rows - row, in_window);
    const auto part = [&, count = batch * heads](const std::shared_ptr<void>& memory) {
      auto* start =
          static_cast<std::byte*>(memory.get()) + static_cast<std::size_t>(row) * elements;
      return matrix(start, d.config.type, count, head_dim);
    };
    attention->run(as_const(part(d.q)),
                   {.keys = as_const(cache_.keys),
                    .values = as_const(cache_.values),
                    .lengths = lengths + row,
                    .page_table = pages + row * pages_of_row},
                   part(d.attended), stream);
    row += batch;
  }
}

layer_state begin_layers(decoder_operators& d, const layer_tokens& tokens,
                         const const_matrix& embedded, const void* first_norm, stream_ref stream) {
  d.open_windows(tokens, stream);
  const matrix nothing = d.view(d.zeros, embedded.rows, embedded.cols);
  const layer_state sum = d.add_and_normalise(embedded, as_const(nothing), first_norm, stream);
  if (!d.residual_norm) return sum;
  d.residual_norm->run({.in = as_const(sum.x), .residual = as_const(nothing), .weight = first_norm},
                       stream);
  return d.state_of(*d.residual_norm, embedded.rows);
}

}  // namespace untax
