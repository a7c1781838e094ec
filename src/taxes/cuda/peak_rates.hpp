#pragma once

#include <untax/taxes/report.hpp>

#include "src/taxes/cuda/gpu_team.hpp"

namespace untax {

/// Symmetric memory that the measurement of the link takes of each rank.
inline constexpr std::size_t link_bytes = std::size_t{256} << 20U;

/// Bytes a second that a rank sends while all send to all, each to one after the other, by the copy
/// engines: the most that the links do.
[[nodiscard]] spread spread_of_link_rate(gpu_team& team);
[[nodiscard]] inline double link_rate(gpu_team& team) { return spread_of_link_rate(team).median; }
/// Bytes a second that a kernel reads from memory.
[[nodiscard]] double memory_rate(gpu_team& team);

}  // namespace untax
