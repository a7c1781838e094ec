#pragma once

#include <cstdint>

#include "ops/collectives_common/direct_layout.hpp"

namespace untax {

/// Data that goes from each rank straight into the results of others, unchanged: all_gather,
/// all_to_all, broadcast in one phase. `Parts` are as in exchange_protocol.
///
/// `first` opens a result to a source, `second` says that the source's part has landed there.
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
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      if (share(source, rank(), lane).empty()) continue;
      emit(step{.publish = flag(first, lane, rank(), source, epoch), .prompt = true});
    }
    for (int i = 0; i < world(); ++i)
      send(receiver_at_hop(rank(), turned(i, lane, world()), world()), lane, epoch, emit);
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      if (share(source, rank(), lane).empty()) continue;
      emit(step{.acquire = flag(second, lane, source, rank(), epoch)});
    }
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range share(int from, int to, int lane) const noexcept {
    return share_of(parts_.sent(from, to), lane);
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void send(int to, int lane, std::uint64_t epoch, Emit&& emit) const {
    const range mine = share(rank(), to, lane);
    const std::int64_t moved = parts_.lands(rank(), to) - parts_.sent(rank(), to).begin;
    const pieces chunks = chunks_of(mine);
    for (int i = 0; i < chunks.count(); ++i) {
      const range chunk = chunks.at(i);
      const bool begins = i == 0 && to != rank();
      const bool ends = i + 1 == chunks.count() && to != rank();
      copy({operand::a, rank(), 0, chunk.begin}, {operand::c, to, 0, chunk.begin + moved},
           chunk.size, begins ? flag(first, lane, to, rank(), epoch) : room{},
           ends ? flag(second, lane, rank(), to, epoch) : room{}, emit);
    }
  }

  Parts parts_;
};

}  // namespace untax
