#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include <untax/core/matrix.hpp>
#include <untax/decoder/config.hpp>
#include <untax/decoder/layer.hpp>
#include <untax/decoder/options.hpp>
#include <untax/decoder/shares.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/flash_attention.hpp>
#include <untax/ops/flash_decode.hpp>
#include <untax/ops/linear.hpp>
#include <untax/ops/rope_append.hpp>
#include <untax/world/world.hpp>

#include "decoder/backend.hpp"
#include "decoder/exchange.hpp"

namespace untax {

/// A world of this rank alone, beside `w`, in memory of the same kind.
[[nodiscard]] world alone_beside(const world& w);

/// Options of the products of a decoder.
[[nodiscard]] linear_options linear_options_of(const decoder_options& options);

/// What the layers of a rank share.
struct decoder_operators {
  decoder_operators(world& w, const decoder_config& c, const decoder_options& o);

  world* job;  ///< all ranks
  decoder_config config;
  decoder_options options;
  weight_shares share;
  std::int64_t rows;         ///< the most tokens of a run
  std::int64_t prompt_keys;  ///< the most keys of a prefill
  std::int64_t window;       ///< keys of layers with a window; 0: no sequence is as long
  world alone;               ///< this rank, for operators that work on what it has
  std::unique_ptr<decoder_backend> backend;

  linear qkv, output, gate_up, down;
  rope_append rope;
  /// Of bulk patterns: the sum over ranks ahead of `norm`, which is then of this rank alone.
  std::optional<rank_sum> sum;
  all_reduce_norm norm;
  /// Adds normalised rows to the residual stream and normalises the sum, in families with post
  /// norms.
  std::optional<all_reduce_norm> residual_norm;

  /// [tokens, rotated]: by position; of layers with a window the local ones.
  std::shared_ptr<void> rotations, local_rotations;
  // Memory between operators, with `rows` rows; gathered ones have `prompt_keys`.
  std::shared_ptr<void> window_lengths, window_rows;  ///< of each token of a run
  std::shared_ptr<void> zeros, projected, q, attended, partial, activated, gathered_keys,
      gathered_values;
  std::shared_ptr<void> sums;  ///< of `sum`

  /// Attention of a step.
  struct planned_attention {
    std::int64_t batch = 0;  ///< sequences that it takes
    flash_decode* attention = nullptr;
  };
  /// That for at least `batch` sequences, or for as many as there is one. In a window, each key is
  /// a page of its own.
  planned_attention step_attention(std::int64_t batch, bool in_window = false);
  /// The most sequences that an attention of steps takes.
  [[nodiscard]] std::int64_t most_step_batch() const { return step_attentions_.rbegin()->first; }
  /// Whether prompts take the attention of steps, token by token, in some layers: that of prompts
  /// has neither a soft cap nor windows.
  [[nodiscard]] bool takes_each_token() const { return config.attention_cap > 0 || window > 0; }
  /// Finds the keys in the windows of all tokens of a run.
  void open_windows(const layer_tokens& tokens, stream_ref stream);
  /// Pages that a row of a page table has.
  [[nodiscard]] std::int64_t sequence_pages() const {
    return ceil_div(options.tokens, options.page_size);
  }
  /// Attention of a prefill.
  flash_attention& prompt_attention(const layer_tokens& tokens);
  /// Plans it, if no prompts before had as many tokens. Returns whether it did.
  bool plans_prompt_attention(const layer_tokens& tokens);
  /// The first `count` rows of memory, of `cols` elements each.
  [[nodiscard]] matrix view(const std::shared_ptr<void>& memory, std::int64_t count,
                            std::int64_t cols) const {
    return {memory.get(), config.type, count, cols};
  }
  /// The sum over ranks of `partial` on top of `residual`, and its rows normalised with `weight`.
  layer_state add_and_normalise(const const_matrix& partial, const const_matrix& residual,
                                const void* weight, stream_ref stream);
  /// Rows of an operator's own results.
  [[nodiscard]] layer_state state_of(all_reduce_norm& op, std::int64_t count) const;

 private:
  void plan_attentions(std::int64_t most_batch);

  std::map<std::int64_t, flash_decode> step_attentions_, window_attentions_;  ///< by capacity
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, flash_attention>
      prompt_attentions_;  ///< by sequences, queries, keys
};

}  // namespace untax
