#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <untax/core/stream_ref.hpp>
#include <untax/decoder/decoder.hpp>

namespace untax {

/// The most probable continuations of some prompts, and the time they took at this rank.
struct generation {
  std::vector<std::vector<std::int32_t>> tokens;  ///< of each prompt
  double first_token_seconds = 0;                 ///< until each prompt had its first token
  double step_seconds = 0;  ///< median of the steps, each a token of each prompt
  double seconds = 0;       ///< of all of it
};

/// Collective. Continues each prompt by `count` tokens, of which each has the largest logit.
/// Prompts that one prefill cannot take follow each other. The sequences are removed in the end.
/// Throws as `decoder::prefill` and `decoder::stage`.
[[nodiscard]] generation generate(decoder& model,
                                  std::span<const std::vector<std::int32_t>> prompts,
                                  std::int64_t count, stream_ref stream = {});

/// Collective. The same for several decoders, which take turns prompt by prompt and step by step,
/// so that other load of the machine slows all of them: the way to compare them.
[[nodiscard]] std::vector<generation> generate_in_turn(
    std::span<decoder* const> models, std::span<const std::vector<std::int32_t>> prompts,
    std::int64_t count, stream_ref stream = {});

}  // namespace untax
