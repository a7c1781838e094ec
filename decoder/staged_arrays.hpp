#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <untax/core/stream_ref.hpp>
#include <untax/decoder/decoder.hpp>
#include <untax/decoder/layer.hpp>
#include <untax/decoder/pages.hpp>

#include "decoder/operators.hpp"

namespace untax {

/// The numbers that say where the tokens of a run are: the host computes them, and copies them to
/// the memory of the operators. Steps and prefills have their own, so that a prefill between two
/// replays of a graph changes nothing of it.
class staged_arrays {
 public:
  explicit staged_arrays(decoder_operators& d);

  /// Prompts whose tokens the pages have already.
  layer_tokens stage_prompts(const page_allocator& pages, std::span<const decoder::prompt> prompts,
                             stream_ref stream);
  /// One token of each sequence, which the pages have already.
  void stage_step(const page_allocator& pages, std::span<const int> sequences, stream_ref stream);
  /// The tokens of a step of `rows` sequences.
  [[nodiscard]] layer_tokens step_tokens(std::int64_t rows) const;

  [[nodiscard]] const std::int32_t* prompt_tokens() const noexcept {
    return prompt_tokens_.there();
  }
  /// The row of the last token of each prompt.
  [[nodiscard]] const std::int32_t* last_rows() const noexcept { return last_rows_.there(); }

 private:
  /// An array of the host and in the memory of the operators.
  struct mirrored {
    std::vector<std::int32_t> values;
    std::shared_ptr<void> memory;
    [[nodiscard]] std::int32_t* there() const noexcept {
      return static_cast<std::int32_t*>(memory.get());
    }
  };
  mirrored array(std::int64_t count);
  void send(const mirrored& a, stream_ref stream);
  /// What tokens of a prompt see, one by one.
  void add_tokens(std::int64_t keys, std::int64_t count, std::span<const std::int32_t> pages);
  void add_pages(mirrored& table, std::span<const std::int32_t> pages) const;

  decoder_operators* d_;
  std::int64_t pages_per_sequence_;
  std::int64_t padding_ = 0;  ///< of arrays of tokens, where attention takes tokens one by one
  mirrored prompt_tokens_, prompt_positions_, prompt_sequences_, prompt_table_, query_begins_,
      key_begins_, key_rows_, last_rows_, token_lengths_, token_table_;
  /// Of a step, in one array, since each copy costs a launch: positions, lengths, and the page
  /// table.
  mirrored step_;
  std::int64_t step_lengths_ = 0;  ///< their first element
  std::int64_t step_table_ = 0;
};

}  // namespace untax
