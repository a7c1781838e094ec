#pragma once

#include <cstdint>
#include <limits>

#include "ops/collectives_common/direct_layout.hpp"
#include "ops/collectives_common/two_phase_layout.hpp"

namespace untax {

/// broadcast in two phases, directly into the callers' results: the root writes each chunk into the
/// result of one other rank, its owner, which writes it into the results of the other ranks.
///
/// Every rank opens its result to the root (`first`), which begins when all are open. So a chunk
/// from the root (`first` at its owner, raised once a chunk) shows that all results are open, and
/// the owner may pass it on. `second` signals that all of an owner's share has arrived.
class direct_relay : public direct_layout {
 public:
  /// `plan.world` is at least 2.
  UNTAX_HOST_DEVICE constexpr direct_relay(std::int64_t count, int root,
                                           const collective_plan& plan) noexcept
      : direct_layout(plan),
        whole_{0, count},
        owners_{inner_shares(count, plan.world - 1), root + 1, plan.world},
        root_(root),
        span_(span_for(owners_.full, plan.workers)),
        full_count_(pieces{{0, span_}, plan.chunk}.count()),
        most_count_(pieces{{0, span_for(plan.most, plan.workers)}, plan.chunk}.count()) {}

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int /*kernel_index*/, int worker, std::uint64_t epoch,
                                           Emit&& emit) const {
    if (!keeps(worker))
      return rank() == root_ ? deal(worker, epoch, emit) : relay(worker, epoch, emit);
    const range kept = kept_by(worker, whole_);
    if (rank() == root_ && !kept.empty()) keep({kept, kept.size}, 0, 1, emit);
  }

 private:
  static constexpr int most_chunks = std::numeric_limits<int>::max();

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range share(int owner, int lane) const noexcept {
    return span_of(owners_.of(owner), lane, span_);
  }
  /// The number of chunks of a share.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int count_of(const range& share) const noexcept {
    return share.size == span_ ? full_count_ : chunks_of(share).count();
  }
  /// Signals to an owner that chunk `i` of `count` has arrived from the root.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room scattered(int owner, int i, int count, int lane,
                                                           std::uint64_t epoch) const noexcept {
    const int of_each_run = most_count_ > 0 ? most_count_ : count;
    const auto before = (epoch - 1) * static_cast<std::uint64_t>(of_each_run);
    return flag(first, lane, root_, owner, before + static_cast<std::uint64_t>(i) + 1);
  }
  /// The most chunks of any owner.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int most_of(int lane) const noexcept {
    int most = 0;
    for (int hop = 1; hop < world(); ++hop) {
      const int count = count_of(share(receiver_at_hop(root_, hop, world()), lane));
      most = count > most ? count : most;
    }
    return most;
  }

  /// The steps of the root.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void deal(int lane, std::uint64_t epoch, Emit&& emit) const {
    const int most = most_of(lane);
    for (int hop = 1; most > 0 && hop < world(); ++hop) {
      const int peer = receiver_at_hop(rank(), hop, world());
      emit(step{.acquire = flag(first, lane, peer, rank(), epoch)});
    }
    if (has_keepers()) {
      for (int i = 0; i < most; ++i) deal_round(i, lane, epoch, emit);
      return;
    }
    // Own chunks are copied between those for others, so that the links are not idle meanwhile.
    const pieces kept = chunks_of(span_of(whole_, lane, span_for(whole_.size, lanes())));
    for (int i = 0; i < most; ++i) {
      deal_round(i, lane, epoch, emit);
      keep(kept, i * (world() - 1), (i + 1) * (world() - 1), emit);
    }
    keep(kept, most * (world() - 1), most_chunks, emit);
  }
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void deal_round(int i, int lane, std::uint64_t epoch,
                                              Emit&& emit) const {
    for (int turn = 0; turn + 1 < world(); ++turn) {
      const int owner = receiver_at_hop(rank(), 1 + turned(turn, lane, world() - 1), world());
      const range all = share(owner, lane);
      if (i >= count_of(all)) continue;
      const range chunk = chunks_of(all).at(i);
      copy({operand::a, rank(), 0, chunk.begin}, {operand::c, owner, 0, chunk.begin}, chunk.size,
           {}, {}, emit);
    }
    // Signals follow all copies, so that one release serves them.
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      const int count = count_of(share(owner, lane));
      if (i < count) emit(step{.publish = scattered(owner, i, count, lane, epoch)});
    }
  }
  /// Copies chunks `begin` to `end` - 1, as far as they exist, into the root's own result.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void keep(const pieces& all, int begin, int end, Emit&& emit) const {
    const int count = all.count();
    for (int i = begin; i < end && i < count; ++i) {
      const range chunk = all.at(i);
      copy({operand::a, rank(), 0, chunk.begin}, {operand::c, rank(), 0, chunk.begin}, chunk.size,
           {}, {}, emit);
    }
  }

  /// The steps of the other ranks.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void relay(int lane, std::uint64_t epoch, Emit&& emit) const {
    if (most_of(lane) > 0) emit(step{.publish = flag(first, lane, rank(), root_, epoch)});
    const range own = share(rank(), lane);
    const int count = count_of(own);
    for (int i = 0; i < count; ++i) {
      const range chunk = chunks_of(own).at(i);
      emit(step{.acquire = scattered(rank(), i, count, lane, epoch)});
      for (int turn = 0; turn + 1 < world(); ++turn) {
        const int peer = receiver_at_hop(rank(), 1 + turned(turn, lane, world() - 1), world());
        if (peer == root_) continue;
        copy({operand::c, rank(), 0, chunk.begin}, {operand::c, peer, 0, chunk.begin}, chunk.size,
             {}, i + 1 == count ? flag(second, lane, rank(), peer, epoch) : room{}, emit);
      }
    }
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = source_at_hop(rank(), hop, world());
      if (owner == root_ || share(owner, lane).empty()) continue;
      emit(step{.acquire = flag(second, lane, owner, rank(), epoch)});
    }
  }

  range whole_;
  ownership owners_;
  int root_;
  std::int64_t span_;  // size of a share that is not the last
  int full_count_;     // chunks of such a share
  int most_count_;  // chunks of a full share for the largest count, if runs have any count; else 0
};

static_assert(protocol<direct_relay>);

}  // namespace untax
