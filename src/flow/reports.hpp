#pragma once

#include <chrono>
#include <cstdint>

#include <untax/flow/control.hpp>
#include <untax/flow/liveness.hpp>

namespace untax {

/// The lost rank that makes `rank`, which waits for `peer`, wait for ever; -1 if there is none. For
/// the peer, any end counts. For other ranks, only a failure or the end of the process counts.
[[nodiscard]] int lost_rank(const control& world, const liveness* alive, int rank,
                            int peer) noexcept;

/// The report that stops the world because rank `lost` has ended during `wait` of `rank`. `now` is
/// a time of the clock of the wait records.
[[nodiscard]] stop_report report_of_loss(const control& world, const liveness* alive, int rank,
                                         const wait_snapshot& wait, int lost, std::uint64_t now);
/// The report that stops the world because `wait` of `rank` took longer than `limit`.
[[nodiscard]] stop_report report_of_limit(const control& world, const liveness* alive, int rank,
                                          const wait_snapshot& wait,
                                          std::chrono::milliseconds limit, std::uint64_t now);
/// Stops the world if a kernel of `rank` has given up a wait, and returns whether it has.
bool report_kernel(const control& world, const liveness* alive, int rank,
                   std::chrono::milliseconds limit, std::uint64_t now);
/// The report that stops the world because the thread of `rank` was interrupted during `wait`.
[[nodiscard]] stop_report report_of_interrupt(int rank, const wait_snapshot& wait);

}  // namespace untax
