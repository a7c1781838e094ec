#pragma once

#include <untax/taxes/report.hpp>

#include "src/taxes/cuda/gpu_team.hpp"

namespace untax {

/// The symmetric memory of each rank, in bytes, that the measurement of the link needs.
inline constexpr std::size_t link_bytes = std::size_t{256} << 20U;

/// Bytes per second that a rank sends by copy engines while all ranks send, each to one peer after
/// the other. This is the highest rate of the links.
[[nodiscard]] spread spread_of_link_rate(gpu_team& team);
[[nodiscard]] inline double link_rate(gpu_team& team) { return spread_of_link_rate(team).median; }
/// Bytes per second that a kernel reads from device memory.
[[nodiscard]] double memory_rate(gpu_team& team);

}  // namespace untax
