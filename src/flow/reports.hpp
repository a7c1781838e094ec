#pragma once

#include <chrono>
#include <cstdint>

#include <untax/flow/control.hpp>
#include <untax/flow/liveness.hpp>

namespace untax {

/// The rank because of which `rank`, which waits for `peer`, will wait for ever; or -1. The peer
/// that has to signal must not have ended in any way; the others must not have ended badly.
[[nodiscard]] int lost_rank(const control& world, const liveness* alive, int rank,
                            int peer) noexcept;

/// What stops the world when `wait` of `rank` is for somebody who is lost. `now` is on the clock of
/// the records.
[[nodiscard]] stop_report report_of_loss(const control& world, const liveness* alive, int rank,
                                         const wait_snapshot& wait, int lost, std::uint64_t now);
/// What stops the world when `wait` of `rank` took longer than `limit`.
[[nodiscard]] stop_report report_of_limit(const control& world, const liveness* alive, int rank,
                                          const wait_snapshot& wait,
                                          std::chrono::milliseconds limit, std::uint64_t now);

}  // namespace untax
