#pragma once

#include <cstdint>

#include "ops/collectives_common/chunked_layout.hpp"

namespace untax {

/// Data that goes from each rank straight to other ranks, unchanged: all_gather, all_to_all,
/// broadcast in one phase.
///
/// `Parts` names source and destination: `sent(from, to)` is a range of a of `from`, and
/// `lands(from, to)` is the index at which it begins in c of `to`. Data that a rank sends to itself
/// is copied.
///
/// In each round a worker sends one chunk to every peer, nearest first, and takes one from every
/// peer in the order of arrival.
template <class Parts>
class exchange_protocol : public chunked_layout {
 public:
  UNTAX_HOST_DEVICE constexpr exchange_protocol(const Parts& parts,
                                                const collective_plan& plan) noexcept
      : chunked_layout(plan, 1, largest(parts, plan)), parts_(parts) {}

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int kernel_index, int worker, std::uint64_t epoch,
                                           Emit&& emit) const {
    if (kernel_index == 1) return pass_barrier(kernel_index, epoch, emit);
    answer_roll_call(worker, epoch, emit);
    const role mine = role_of(kernel_index, worker);
    const int lag = lag_of(mine.sends && mine.receives);
    for (int i = 0, idle = 0; idle <= lag; ++i) {
      bool busy = false;
      for (int lane = mine.lane; lane < mine.end; ++lane) {
        if (mine.sends) {
          const auto to = [&](int peer) { return chunks(rank(), peer, lane); };
          busy = send_round(lane, i, epoch, to, emit) || busy;
        }
        if (mine.receives && i >= lag) busy = take_round(lane, i - lag, epoch, emit) || busy;
      }
      idle = busy ? 0 : idle + 1;
    }
    end_roll_call(worker, epoch, emit);
  }

 private:
  /// The size of the largest part that this rank sends or gets.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr std::int64_t largest(
      const Parts& parts, const collective_plan& plan) noexcept {
    std::int64_t most = 0;
    for (int peer = 0; peer < plan.world; ++peer) {
      const std::int64_t sent = parts.sent(plan.rank, peer).size;
      const std::int64_t got = parts.sent(peer, plan.rank).size;
      most = sent > most ? sent : most;
      most = got > most ? got : most;
    }
    return most;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr lane_chunks chunks(int from, int to,
                                                               int lane) const noexcept {
    return chunks_of(parts_.sent(from, to), lane);
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr bool take_round(int lane, int i, std::uint64_t epoch,
                                              Emit&& emit) const {
    const lane_chunks kept = chunks(rank(), rank(), lane);
    const bool keeps = i < kept.count();
    if (keeps) {
      const range chunk = kept.at(i);
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = chunk.size,
                .from = in_a(chunk.begin),
                .to = landing_of(rank(), kept, chunk)});
    }
    const auto chunks_from = [&](int source) { return chunks(source, rank(), lane); };
    const auto to = [&](int source, const lane_chunks& all, const range& chunk) {
      return landing_of(source, all, chunk);
    };
    return take_all(ring_, 1, lane, i, epoch, chunks_from, to, emit) || keeps;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr place landing_of(int source, const lane_chunks& all,
                                                             const range& chunk) const noexcept {
    return in_c(parts_.lands(source, rank()) + chunk.begin - all.all.whole.begin);
  }

  Parts parts_;
};

}  // namespace untax
