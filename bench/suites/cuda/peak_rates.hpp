#pragma once

#include "bench/suites/cuda/gpu_team.hpp"

namespace untax::bench {

/// Symmetric memory that the measurement of the link takes of each rank.
inline constexpr std::size_t link_bytes = std::size_t{64} << 20U;

/// Bytes a second that a rank sends while all send to all, each to one after the other, by the copy
/// engines: the most that the links do.
[[nodiscard]] double link_rate(gpu_team& team);
/// Bytes a second that a kernel reads from memory.
[[nodiscard]] double memory_rate(gpu_team& team);

}  // namespace untax::bench
