#pragma once

#include "src/taxes/backends.hpp"
#include "src/taxes/cuda/gpu_team.hpp"

namespace untax {

/// Times flash_decode in its patterns, and attention alone, in turn, on the same keys; caches go
/// round in more memory than other caches hold. All results have to be the same bits. `link_rate`:
/// bytes a second that a rank sends, with its spread.
[[nodiscard]] tax_row measure_device_attention(gpu_team& team, const layer_operation& op,
                                               int repeats, const spread& link_rate);

/// Symmetric memory of each rank that it takes.
[[nodiscard]] std::size_t heap_for_attention(const layer_operation& op, int ranks);

/// Seconds that so many bytes take at a rate.
[[nodiscard]] inline spread seconds_at(double bytes, const spread& rate) {
  // The higher the rate the less the time.
  return {bytes / rate.median, bytes / rate.p90, bytes / rate.p10};
}

}  // namespace untax
