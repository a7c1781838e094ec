#include "reports.hpp"

#include <fmt/format.h>

#include <untax/flow/wait_graph.hpp>

namespace untax {

int lost_rank(const control& world, const liveness* alive, int rank, int peer) noexcept {
  const auto ended_badly = [&](int number) {
    const rank_state state = state_of(world, alive, number);
    return state == rank_state::gone || state == rank_state::failed;
  };
  const bool other_rank = peer >= 0 && peer < world.ranks() && peer != rank;
  if (other_rank && (ended_badly(peer) || world.status(peer) == rank_status::finished)) return peer;
  for (int waiter = 0; waiter < world.ranks(); ++waiter) {
    if (waiter != rank && waiter != peer && ended_badly(waiter)) return waiter;
  }
  return -1;
}

stop_report report_of_loss(const control& world, const liveness* alive, int rank,
                           const wait_snapshot& wait, int lost, std::uint64_t now) {
  const wait_graph graph = wait_graph::of(world, alive);
  return {
      rank, lost, errc::peer_lost,
      fmt::format("{} without signalling, while rank {} waited for rank {}: {}\n{}",
                  graph.describe(lost), rank, wait.peer, describe(wait), graph.text(rank, now))};
}

stop_report report_of_limit(const control& world, const liveness* alive, int rank,
                            const wait_snapshot& wait, std::chrono::milliseconds limit,
                            std::uint64_t now) {
  const wait_graph graph = wait_graph::of(world, alive);
  const int suspect = graph.suspect(rank);
  return {rank, suspect, errc::timeout,
          fmt::format("waited {} ms for rank {}: {}. Suspect: {}\n{}", limit.count(), wait.peer,
                      describe(wait), graph.describe(suspect), graph.text(rank, now))};
}

bool report_kernel(const control& world, const liveness* alive, int rank,
                   std::chrono::milliseconds limit, std::uint64_t now) {
  const int slot = world.kernel_gave_up(rank);
  if (slot < 0) return false;
  wait_snapshot unknown;
  unknown.operator_name = "a kernel";
  const wait_snapshot wait = world.wait_at(rank, slot).value_or(unknown);
  world.stop(report_of_limit(world, alive, rank, wait, limit, now));
  return true;
}

stop_report report_of_interrupt(int rank, const wait_snapshot& wait) {
  return {rank, rank, errc::aborted,
          fmt::format("interrupted by a signal while it waited for rank {}: {}", wait.peer,
                      describe(wait))};
}

}  // namespace untax
