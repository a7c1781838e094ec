#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/decoder/shares.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// A rank's candidate for the next token of a sequence.
struct token_score {
  float score = 0;
  std::int32_t token = 0;
};

/// Logits of all ranks. Rank r has columns begins[r] to begins[r + 1] - 1; its rows follow each
/// other, from element r * part on.
struct gathered_logits {
  const void* data = nullptr;
  dtype type = dtype::f32;
  const std::int64_t* begins = nullptr;  ///< [ranks + 1]
  int ranks = 1;
  std::int64_t part = 0;
};

/// Tokens with the keys that they see, of which windows leave the last ones.
struct windowed_keys {
  const std::int32_t* lengths = nullptr;
  const std::int32_t* page_table = nullptr;  ///< [tokens, sequence_pages]
  std::int64_t sequence_pages = 0;
  std::int64_t page_size = 0;
  std::int64_t window = 0;
};

/// The small steps of a decoder that are no operators, in the memory where a world has its heaps.
/// On GPUs they are launched on the stream and can be captured, but for `upload` and `download`; on
/// hosts they return when they are done, and know no stream. Pointers are to that memory, unless
/// they say otherwise.
class decoder_backend {
 public:
  using replayed = std::function<void(stream_ref)>;

  virtual ~decoder_backend() = default;

  /// The stream of a run: the caller's or, if none is given on a GPU, one of its own after the work
  /// in the default stream.
  [[nodiscard]] virtual stream_ref begin(stream_ref given) = 0;
  /// Ends a run: without a stream of the caller's it waits, and throws the error of a wait of the
  /// run for another rank.
  virtual void finish(stream_ref given) = 0;

  /// Launches what `body` launches on `stream`. On GPUs that is captured at the second call with
  /// the same `key`, and replayed as a graph from then on.
  virtual void replay(std::int64_t key, stream_ref stream, const replayed& body) = 0;
  /// Ends the graphs. To be called before the operators in them end.
  virtual void end_replays() noexcept {}

  /// Zeroed memory, which begins at a multiple of 512 bytes.
  [[nodiscard]] virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  /// Copies from memory of the host, which may be changed again when it returns.
  virtual void upload(void* to, const void* from, std::size_t bytes, stream_ref stream) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes, stream_ref stream) = 0;
  /// Copies to memory of the host, and waits for it.
  virtual void download(void* to, const void* from, std::size_t bytes, stream_ref stream) = 0;

  /// Row t of `to` = row tokens[t] - `share.begin` of `embedding`, times `scale`, or zeros if
  /// another rank has that token.
  virtual void embed(const const_matrix& embedding, const index_range& share,
                     const std::int32_t* tokens, float scale, const matrix& to,
                     stream_ref stream) = 0;
  /// Row i of `to` = row rows[i] of `from`. Rows are dense, and on GPUs multiples of 16 bytes.
  virtual void gather_rows(const const_matrix& from, const std::int32_t* rows, const matrix& to,
                           stream_ref stream) = 0;
  /// lengths[i] = the keys in the window of token i, and rows[i * window + j] = the row of the
  /// cache that has the j-th of them.
  virtual void open_windows(const windowed_keys& keys, std::int64_t tokens, std::int32_t* lengths,
                            std::int32_t* rows, stream_ref stream) = 0;
  /// best[i] = the largest of row i of `logits`, the first one if there are several; its token is
  /// its column + `first`. NaN counts as the largest.
  virtual void best_of_rows(const const_matrix& logits, std::int64_t first, token_score* best,
                            stream_ref stream) = 0;
  /// tokens[i] = the token of the best of best[r * stride + i] over `ranks` ranks r.
  virtual void best_of_ranks(const token_score* best, int ranks, std::int64_t stride,
                             std::int32_t* tokens, std::int64_t count, stream_ref stream) = 0;
  /// The logits that all ranks have of all rows, as `to` in fp32: cap * tanh(logit / cap), or as
  /// they are with cap 0.
  virtual void join_logits(const gathered_logits& from, float cap, const matrix& to,
                           stream_ref stream) = 0;
};

/// The backend of a world.
[[nodiscard]] std::unique_ptr<decoder_backend> decoder_backend_of(world& w);
/// That of hosts.
[[nodiscard]] std::unique_ptr<decoder_backend> host_decoder_backend();
/// That of GPUs. Throws `unsupported` in a build without CUDA.
[[nodiscard]] std::unique_ptr<decoder_backend> device_decoder_backend(world& w);

}  // namespace untax
