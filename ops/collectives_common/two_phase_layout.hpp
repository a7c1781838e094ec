#pragma once

#include <cstdint>

#include "ops/collectives_common/chunked_layout.hpp"

namespace untax {

/// The distribution of the elements of a result over the ranks that own them: shard i to rank
/// `first` + i, modulo the number of ranks.
struct ownership {
  sharding shards;
  int first = 0;
  int world = 1;
  std::int64_t full = shards.full();  ///< kept, since a division is slow in kernels

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range of(int rank) const noexcept {
    const int shard = rank < first ? rank - first + world : rank - first;
    const std::int64_t begin = smaller(shards.extent, shard * full);
    return {begin, smaller(shards.extent, begin + full) - begin};
  }
};

/// The second phase of a collective: finished chunks go from their owners to the others.
class two_phase_layout : public chunked_layout {
 protected:
  UNTAX_HOST_DEVICE constexpr two_phase_layout(const collective_plan& plan, int phases,
                                               const ownership& owners, std::int64_t usual) noexcept
      : chunked_layout(plan, phases, usual), owners_(owners) {}

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr lane_chunks owned_chunks(int owner,
                                                                     int lane) const noexcept {
    return chunks_of(owners_.of(owner), lane);
  }

  /// This rank's chunk `i` of `all` on its way to `peer` in the second phase.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr parcel passed_on(int peer, int lane, int i,
                                                             const lane_chunks& all,
                                                             std::uint64_t epoch) const noexcept {
    return parcel_of(rank(), peer, lane, i, all.count(), epoch);
  }

  /// Collects chunk `i` of every owner from hop `first` on; false if no owner has this many.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr bool collect_round(int first, int lane, int i, std::uint64_t epoch,
                                                 Emit&& emit) const {
    return take_all(
        second_ring_, first, lane, i, epoch, [&](int owner) { return owned_chunks(owner, lane); },
        [&](int, const lane_chunks&, const range& chunk) { return in_c(chunk.begin); }, emit);
  }

  /// Runs the rounds of a worker: `first(lane, i)` sends, `second(lane, i)` receives and passes on,
  /// `third(lane, i)` collects the chunks that were passed on. Each returns whether there was
  /// something to do. Receiving lags behind sending, and collecting behind receiving.
  UNTAX_CALLS_ANY_SIDE
  template <class First, class Second, class Third>
  UNTAX_HOST_DEVICE constexpr void run_rounds(const role& mine, First&& first, Second&& second,
                                              Third&& third) const {
    const int receive_lag = lag_of(mine.sends && mine.receives);
    const int collect_lag = receive_lag + lag_of(mine.receives && mine.collects);
    for (int i = 0, idle = 0; idle <= collect_lag; ++i) {
      bool busy = false;
      for (int lane = mine.lane; lane < mine.end; ++lane) {
        if (mine.sends) busy = first(lane, i) || busy;
        if (mine.receives && i >= receive_lag) busy = second(lane, i - receive_lag) || busy;
        if (mine.collects && i >= collect_lag) busy = third(lane, i - collect_lag) || busy;
      }
      idle = busy ? 0 : idle + 1;
    }
  }

 private:
  ownership owners_;
};

}  // namespace untax
