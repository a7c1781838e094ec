#pragma once

#include "src/taxes/backends.hpp"
#include "src/taxes/cuda/gpu_team.hpp"

namespace untax {

/// Times flash_decode in its patterns, and attention alone, in turn and on the same keys. Runs use
/// KV caches at different places, in more memory than hardware caches hold. The bits of all results
/// have to be equal. `link_rate` is in bytes per second that a rank sends.
[[nodiscard]] tax_row measure_device_attention(gpu_team& team, const layer_operation& op,
                                               int repeats, const spread& link_rate);

/// The bytes of symmetric memory that `measure_device_attention` needs at each rank.
[[nodiscard]] std::size_t heap_for_attention(const layer_operation& op, int ranks);

/// The seconds for `bytes` bytes at `rate` bytes per second.
[[nodiscard]] inline spread seconds_at(double bytes, const spread& rate) {
  // p10 and p90 change places, since a higher rate means less time.
  return {bytes / rate.median, bytes / rate.p90, bytes / rate.p10};
}

}  // namespace untax
