#pragma once

#include <cstdint>

#include "ops/collectives_common/chunked_layout.hpp"

namespace untax {

/// How the elements of a result are dealt to the ranks that answer for them: shard i to rank
/// `first` + i, around the world.
struct ownership {
  sharding shards;
  int first = 0;
  int world = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range of(int rank) const noexcept {
    return shards.of((rank - first + world) % world);
  }
};

/// The second phase of a collective: owners pass finished chunks, which lie in their c, on to the
/// others.
class two_phase_layout : public chunked_layout {
 protected:
  /// `bystander` is the rank that needs nothing from others; -1 if there is none.
  UNTAX_HOST_DEVICE constexpr two_phase_layout(const collective_plan& plan, int phases,
                                               const ownership& owners, int bystander) noexcept
      : chunked_layout(plan, phases), owners_(owners), bystander_(bystander) {}

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr lane_chunks owned_chunks(int owner,
                                                                     int lane) const noexcept {
    return chunks_of(owners_.of(owner), lane);
  }

  /// Own chunk `i` to everybody, nearest first.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void pass_on(int lane, int i, std::uint64_t epoch,
                                           Emit&& emit) const {
    const lane_chunks all = owned_chunks(rank(), lane);
    const range chunk = all.at(i);
    for (int hop = 1; hop < world(); ++hop) {
      const int peer = receiver_at_hop(rank(), hop, world());
      if (peer == bystander_) continue;
      send(second_ring_, parcel_of(rank(), peer, lane, i, all.count(), epoch), in_c(chunk.begin),
           chunk.size, emit);
    }
  }

  /// Chunk `i` of every other owner, as they come; false if none has so many.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr bool collect_round(int lane, int i, std::uint64_t epoch,
                                                 Emit&& emit) const {
    if (rank() == bystander_) return false;
    bool busy = false;
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = source_at_hop(rank(), hop, world());
      const lane_chunks all = owned_chunks(owner, lane);
      const int count = all.count();
      if (i >= count) continue;
      busy = true;
      const range chunk = all.at(i);
      take(second_ring_, parcel_of(owner, rank(), lane, i, count, epoch), in_c(chunk.begin),
           chunk.size, emit);
    }
    return busy;
  }

  /// Runs the rounds of a worker: `first(i)` sends, `second(i)` receives and passes on, both say
  /// whether there was something to do; then comes what is collected. Receiving stays behind
  /// sending, and collecting behind receiving.
  UNTAX_CALLS_ANY_SIDE
  template <class First, class Second, class Emit>
  UNTAX_HOST_DEVICE constexpr void run_rounds(const role& mine, bool collects, std::uint64_t epoch,
                                              First&& first, Second&& second, Emit&& emit) const {
    const int receive_lag = lag_of(mine.sends && mine.receives);
    const int collect_lag = receive_lag + lag_of(mine.receives && mine.collects);
    for (int i = 0, idle = 0; idle <= collect_lag; ++i) {
      bool busy = false;
      if (mine.sends) busy = first(i) || busy;
      if (mine.receives && i >= receive_lag) busy = second(i - receive_lag) || busy;
      if (collects && mine.collects && i >= collect_lag)
        busy = collect_round(mine.lane, i - collect_lag, epoch, emit) || busy;
      idle = busy ? 0 : idle + 1;
    }
  }

 private:
  ownership owners_;
  int bystander_;
};

}  // namespace untax
