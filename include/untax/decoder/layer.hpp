#pragma once

#include <cstdint>
#include <memory>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/decoder/config.hpp>
#include <untax/decoder/options.hpp>
#include <untax/decoder/weights.hpp>
#include <untax/world/world.hpp>

namespace untax {

struct decoder_operators;

/// The tokens of a run of layers. All arrays are in the memory of the world's heaps.
struct layer_tokens {
  std::int64_t rows = 0;                    ///< tokens
  const std::int32_t* positions = nullptr;  ///< [rows]: of each token in its sequence
  /// [rows]: the sequence of each token; null in a step, where token t is of sequence t.
  const std::int32_t* sequences = nullptr;
  /// [batch, ceil(tokens / page_size)], dense.
  const std::int32_t* page_table = nullptr;
  std::int64_t batch = 0;  ///< sequences

  /// Of a step: [sequences of the options], keys of each sequence with that of its token; 0 for
  /// those from `rows` on.
  const std::int32_t* lengths = nullptr;

  // Of a prefill. Tokens of a sequence follow each other, and are its last ones.
  const std::int32_t* query_begins = nullptr;  ///< [batch + 1]
  const std::int32_t* key_begins = nullptr;    ///< [batch + 1]
  const std::int32_t* key_rows = nullptr;      ///< [keys]: of each key in the cache
  std::int64_t keys = 0;
  std::int64_t longest_prompt = 0;
  std::int64_t most_keys = 0;  ///< of a sequence
  /// Of a prefill of a model whose attention has a soft cap, which only that of steps has: the keys
  /// that each token sees, and the pages of its sequence. Behind `rows` tokens are some without
  /// keys.
  const std::int32_t* token_lengths = nullptr;
  const std::int32_t* token_pages = nullptr;
};

/// The keys and values of a layer: [pages * page_size, kv_heads * head_dim of this rank].
struct layer_cache {
  matrix keys;
  matrix values;
};

/// Residual stream and its normalised rows, [rows, hidden], the same at all ranks.
struct layer_state {
  matrix x;
  matrix normed;
};

/// The operators of layers of one configuration, and the memory between them. Layers share them,
/// since one runs after the other. Collective; `w` has to outlive it. Throws `unsupported` with the
/// property for which there is no operator.
[[nodiscard]] std::shared_ptr<decoder_operators> plan_decoder_operators(
    world& w, const decoder_config& config, const decoder_options& options);

/// A layer of a decoder, split over the ranks by heads and columns: norm, attention over a paged
/// cache, norm, gated MLP, with residuals. decoder/README.md draws it.
class decoder_layer {
 public:
  /// `layer` is its number. Weights and cache have to outlive it.
  decoder_layer(std::shared_ptr<decoder_operators> operators, std::int64_t layer,
                const decoder_layer_weights& weights, const layer_cache& cache);

  /// Collective. Adds attention and MLP of the tokens to the state's residual stream, appends their
  /// keys and values to the cache, and normalises with `next_norm`, [hidden], the norm of what
  /// follows. The state is that of `begin_layers` or of the layer ahead. With a stream it only
  /// launches.
  layer_state run(const layer_tokens& tokens, const layer_state& state, const void* next_norm,
                  stream_ref stream = {});

 private:
  void attend(const layer_tokens& tokens, stream_ref stream);
  /// Each row attends to the keys of its own pages or, in a window, to keys of its own rows.
  void attend_each(std::int64_t rows, const std::int32_t* lengths, const std::int32_t* pages,
                   bool in_window, stream_ref stream);

  std::shared_ptr<decoder_operators> operators_;
  std::int64_t layer_;
  decoder_layer_weights weights_;
  layer_cache cache_;
};

/// Collective. Sums the ranks' embeddings of the tokens, [rows, hidden], and normalises them with
/// the first layer's input norm.
layer_state begin_layers(decoder_operators& operators, const layer_tokens& tokens,
                         const const_matrix& embedded, const void* first_norm,
                         stream_ref stream = {});

}  // namespace untax
