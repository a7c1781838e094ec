#pragma once

#include <cstdint>

#include "ops/collectives_common/direct_layout.hpp"

namespace untax {

/// Data that goes from each rank straight into the results of other ranks, unchanged: all_gather,
/// all_to_all, broadcast in one phase. `Parts` are as in exchange_protocol.
///
/// `first` opens a result to a source, `second` signals that the source's part has arrived there.
template <class Parts>
class direct_exchange : public direct_layout {
 public:
  UNTAX_HOST_DEVICE constexpr direct_exchange(const Parts& parts,
                                              const collective_plan& plan) noexcept
      : direct_layout(plan), parts_(parts) {}

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int /*kernel_index*/, int lane, std::uint64_t epoch,
                                           Emit&& emit) const {
    if (keeps(lane)) return send(rank(), kept_by(lane, parts_.sent(rank(), rank())), emit);
    span known;
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      if (share(source, rank(), lane, known).empty()) continue;
      emit(step{.publish = flag(first, lane, rank(), source, epoch)});
    }
    // Data that stays at this rank needs no permission: it is copied while permissions are in
    // flight.
    if (!has_keepers()) send(rank(), share(rank(), rank(), lane, known), emit);
    for (int hop = 1; hop < world(); ++hop) {
      const int to = receiver_at_hop(rank(), hop, world());
      if (share(rank(), to, lane, known).empty()) continue;
      emit(step{.acquire = flag(first, lane, to, rank(), epoch)});
    }
    for (int i = 0; i + 1 < world(); ++i) {
      const int to = receiver_at_hop(rank(), 1 + turned(i, lane, world() - 1), world());
      send(to, share(rank(), to, lane, known), emit);
    }
    // Signals come last, so that one release serves them.
    for (int hop = 1; hop < world(); ++hop) {
      const int to = receiver_at_hop(rank(), hop, world());
      if (share(rank(), to, lane, known).empty()) continue;
      emit(step{.publish = flag(second, lane, rank(), to, epoch)});
    }
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      if (share(source, rank(), lane, known).empty()) continue;
      emit(step{.acquire = flag(second, lane, source, rank(), epoch)});
    }
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range share(int from, int to, int lane,
                                                        span& known) const noexcept {
    return share_of(parts_.sent(from, to), lane, known);
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void send(int to, const range& some, Emit&& emit) const {
    const std::int64_t moved = parts_.lands(rank(), to) - parts_.sent(rank(), to).begin;
    each_chunk(some, [&](const range& chunk) {
      copy({operand::a, rank(), 0, chunk.begin}, {operand::c, to, 0, chunk.begin + moved},
           chunk.size, {}, {}, emit);
    });
  }

  Parts parts_;
};

}  // namespace untax
