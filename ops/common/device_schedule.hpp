#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engines/schedule/check.hpp"
#include "engines/schedule/lanes.hpp"

namespace untax {

/// The planned kernels of all ranks, lane by lane.
using device_schedule = std::vector<schedule::lane_program>;

/// Proves the schedule, as engines/schedule/check.hpp describes. `operands` are those of each rank,
/// and `epochs` has to be large enough that every room is used twice. Flags that only make lanes
/// wait order nothing.
[[nodiscard]] schedule::schedule_report check_lanes(
    const device_schedule& ranks, const std::vector<schedule::operand_extents>& operands,
    std::uint64_t epochs);
/// As above, for plans that were made of lanes; `orders(rank, flag)`: whether a flag of a rank
/// orders accesses (lane_program::orders).
[[nodiscard]] schedule::schedule_report check_lanes(
    std::span<const schedule::rank_plan> plans,
    const std::function<bool(int rank, int flag)>& orders);

/// The findings about one plan of an operator on GPUs.
struct device_findings {
  std::string plan;           ///< the plan, in words
  std::size_t transfers = 0;  ///< entries of the transfer lists of all ranks
  std::size_t lanes = 0;      ///< of all ranks
  std::uint64_t steps = 0;
  std::uint64_t waits = 0;
  std::vector<std::string> faults;  ///< empty: all is right
  std::string refusal;              ///< why there is no plan; then nothing else is set
};

/// Adds the checker's report to the findings.
void add_report(device_findings& findings, const device_schedule& ranks,
                const schedule::schedule_report& report);

}  // namespace untax
