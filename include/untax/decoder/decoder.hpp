#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <untax/core/stream_ref.hpp>
#include <untax/decoder/config.hpp>
#include <untax/decoder/options.hpp>
#include <untax/decoder/weights.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// A decoder-only transformer, split over the ranks of a world, with its cache of keys and values.
/// All ranks make the same calls with the same sequences and tokens; all get the same results.
/// decoder/README.md draws it.
class decoder {
 public:
  /// Tokens that are appended to a sequence.
  struct prompt {
    int sequence = 0;
    std::span<const std::int32_t> tokens;  ///< in host memory; at least one
  };

  /// Collective. `w` and the weights have to outlive the decoder. Throws `invalid_argument`, also
  /// for weights that are not of the configuration's shapes, `disagreement`, `out_of_memory`, and
  /// `unsupported` with the property of the configuration for which there is no operator.
  decoder(world& w, const decoder_config& config, const decoder_weights& weights,
          const decoder_options& options = {});
  /// Collective. The weights are those of a folder with model.safetensors, or the parts of it; each
  /// rank reads its own. Throws also `invalid_argument` for files that are missing or not right.
  [[nodiscard]] static decoder load(world& w, const std::filesystem::path& folder,
                                    const decoder_config& config,
                                    const decoder_options& options = {});
  /// Collective. Random weights that depend on the seed, and not on the number of ranks.
  [[nodiscard]] static decoder random(world& w, const decoder_config& config, std::uint64_t seed,
                                      const decoder_options& options = {});
  decoder(decoder&&) noexcept;
  decoder& operator=(decoder&&) noexcept;
  /// Collective, as the ends of its operators.
  ~decoder();

  /// Begins a sequence without tokens, and returns its number. Throws `out_of_memory` if there are
  /// as many as the options have.
  int add();
  /// Begins a sequence with the tokens of another one; full pages of the cache are shared. Throws
  /// `out_of_memory`.
  int fork(int sequence, stream_ref stream = {});
  /// Ends a sequence; its pages of the cache are free.
  void remove(int sequence);
  [[nodiscard]] std::int64_t length(int sequence) const;

  /// Collective. Appends tokens to sequences, which may have tokens already, and computes the next
  /// token of each. Throws `invalid_argument` for tokens that the vocabulary does not have, and
  /// `out_of_memory` if cache or capacity do not suffice, before anything is written. With a stream
  /// it launches; where the number or the lengths of prompts are new, it plans before, and waits
  /// until all ranks have. It cannot be captured.
  void prefill(std::span<const prompt> prompts, stream_ref stream = {});

  /// Makes room for one more token of each of `sequences`, and sets the tokens; without tokens they
  /// are the results of the run before, row by row, which had as many sequences. It throws as
  /// `prefill`. It copies a few numbers to the GPU on the stream, and cannot be captured.
  void stage(std::span<const int> sequences, std::span<const std::int32_t> tokens,
             stream_ref stream = {});
  /// Collective. Computes the next tokens of the sequences that were staged last; each `stage` is
  /// followed by one step. On a GPU it can be captured: a replay takes what was staged before it,
  /// as many sequences as in the capture.
  void step(stream_ref stream = {});
  /// Collective. `stage` and `step`.
  void decode(std::span<const int> sequences, std::span<const std::int32_t> tokens = {},
              stream_ref stream = {}) {
    stage(sequences, tokens, stream);
    step(stream);
  }

  /// The sequences of the last run: the rows of its results.
  [[nodiscard]] std::int64_t rows() const noexcept;
  /// The next tokens, [rows], with the largest logits, where the weights are. A caller may write
  /// others there, for a `stage` without tokens.
  [[nodiscard]] std::int32_t* next_tokens() const noexcept;
  /// The logits, fp32 [rows, vocabulary], likewise; null without the option.
  [[nodiscard]] const float* logits() const noexcept;
  /// Copies of these for the host. They wait for the run.
  [[nodiscard]] std::vector<std::int32_t> read_tokens(stream_ref stream = {}) const;
  [[nodiscard]] std::vector<float> read_logits(stream_ref stream = {}) const;

  [[nodiscard]] const decoder_config& config() const noexcept;
  [[nodiscard]] const decoder_options& options() const noexcept;
  /// This rank's weights, which live as long as the decoder if it has loaded them.
  [[nodiscard]] const decoder_weights& weights() const noexcept;

 private:
  struct state;
  explicit decoder(std::unique_ptr<state> whole) noexcept;

  std::unique_ptr<state> state_;
};

}  // namespace untax
