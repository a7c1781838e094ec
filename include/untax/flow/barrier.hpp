#pragma once

#include <cstdint>

#include <untax/flow/control.hpp>
#include <untax/flow/wait.hpp>
#include <untax/memory/host_memory.hpp>

namespace untax {

/// A barrier of all ranks, made of signals: each rank raises its counter at every peer and waits
/// for theirs. The accesses of a rank before it entered are visible to all ranks when they leave.
/// One thread of a rank uses it.
class rank_barrier {
 public:
  rank_barrier(const control& world, int rank) noexcept : world_(world), rank_(rank) {}

  /// Enters the barrier and blocks until all ranks have entered, or until the guard ends the wait.
  /// `what` and `operator_name` name the wait in messages. All barriers use the same counters,
  /// whatever these are.
  template <wait_guard Guard>
  [[nodiscard]] wait_outcome arrive_and_wait(Guard& guard, verb what = verb::barrier,
                                             std::string_view operator_name = "world") {
    ++entered_;
    for (int hop = 1; hop < world_.ranks(); ++hop) {
      host_memory::raise_release(world_.arrived((rank_ + hop) % world_.ranks(), rank_), entered_);
    }
    for (int hop = 1; hop < world_.ranks(); ++hop) {
      const int peer = (rank_ + hop) % world_.ranks();
      const wait_site site{operator_name, what, peer, -1, entered_};
      const wait_outcome outcome =
          wait_until<host_memory>(world_.arrived(rank_, peer), site, guard);
      if (outcome != wait_outcome::ok) return outcome;
    }
    return wait_outcome::ok;
  }

 private:
  control world_;
  int rank_;
  std::uint64_t entered_ = 0;
};

}  // namespace untax
