#pragma once

#include <cstdint>

#include "ops/collectives_common/direct_layout.hpp"
#include "ops/collectives_common/two_phase_layout.hpp"

namespace untax {

/// broadcast in two phases into the callers' results: the root writes each chunk into the result of
/// one other rank, which writes it into those of the rest.
///
/// Everybody opens its result to the root (`first`), which begins when all have. So a chunk that
/// comes from the root (`first` there, raised once a chunk) says that all results are open, and its
/// owner may pass it on; `second` says that all of an owner's share has landed.
class direct_relay : public direct_layout {
 public:
  /// `plan.world` is 2 at least.
  UNTAX_HOST_DEVICE constexpr direct_relay(std::int64_t count, int root,
                                           const collective_plan& plan) noexcept
      : direct_layout(plan),
        whole_{0, count},
        owners_{{count, plan.world - 1}, root + 1, plan.world},
        root_(root) {}

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int /*kernel_index*/, int lane, std::uint64_t epoch,
                                           Emit&& emit) const {
    const int most = most_chunks(lane);
    if (rank() == root_) {
      for (int hop = 1; most > 0 && hop < world(); ++hop) {
        const int peer = receiver_at_hop(rank(), hop, world());
        emit(step{.acquire = flag(first, lane, peer, rank(), epoch)});
      }
      // Between the chunks for others, so that the ways to them are not idle meanwhile.
      const int kept = chunks_of(share_of(whole_, lane)).count();
      for (int i = 0; i < most; ++i) {
        deal(i, lane, epoch, emit);
        keep(i * (world() - 1), (i + 1) * (world() - 1), lane, emit);
      }
      keep(most * (world() - 1), kept, lane, emit);
      return;
    }
    if (most > 0) emit(step{.publish = flag(first, lane, rank(), root_, epoch)});
    const int count = chunks(rank(), lane).count();
    for (int i = 0; i < count; ++i) relay(i, count, lane, epoch, emit);
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = source_at_hop(rank(), hop, world());
      if (owner == root_ || chunks(owner, lane).count() == 0) continue;
      emit(step{.acquire = flag(second, lane, owner, rank(), epoch)});
    }
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr pieces chunks(int owner, int lane) const noexcept {
    return chunks_of(share_of(owners_.of(owner), lane));
  }
  /// Of any owner.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int most_chunks(int lane) const noexcept {
    int most = 0;
    for (int owner = 0; owner < world(); ++owner) {
      if (owner == root_) continue;
      const int count = chunks(owner, lane).count();
      most = count > most ? count : most;
    }
    return most;
  }
  /// The root's word to an owner that chunk `i` of `count` has come.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room dealt(int owner, int i, int count, int lane,
                                                       std::uint64_t epoch) const noexcept {
    const auto before = (epoch - 1) * static_cast<std::uint64_t>(count);
    return flag(first, lane, root_, owner, before + static_cast<std::uint64_t>(i) + 1);
  }

  /// Chunks `begin` to `end` - 1, as far as there are, of the root's own result.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void keep(int begin, int end, int lane, Emit&& emit) const {
    const pieces all = chunks_of(share_of(whole_, lane));
    for (int i = begin; i < end && i < all.count(); ++i) {
      const range chunk = all.at(i);
      copy({operand::a, rank(), 0, chunk.begin}, {operand::c, rank(), 0, chunk.begin}, chunk.size,
           {}, {}, emit);
    }
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void deal(int i, int lane, std::uint64_t epoch, Emit&& emit) const {
    for (int turn = 0; turn + 1 < world(); ++turn) {
      const int owner = receiver_at_hop(rank(), 1 + turned(turn, lane, world() - 1), world());
      const pieces all = chunks(owner, lane);
      if (i >= all.count()) continue;
      const range chunk = all.at(i);
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = chunk.size,
                .from = {operand::a, rank(), 0, chunk.begin},
                .to = {operand::c, owner, 0, chunk.begin}});
    }
    // After all of them, so that one release serves them.
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      const int count = chunks(owner, lane).count();
      if (i < count) emit(step{.publish = dealt(owner, i, count, lane, epoch)});
    }
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void relay(int i, int count, int lane, std::uint64_t epoch,
                                         Emit&& emit) const {
    const range chunk = chunks(rank(), lane).at(i);
    emit(step{.acquire = dealt(rank(), i, count, lane, epoch)});
    for (int turn = 0; turn + 1 < world(); ++turn) {
      const int peer = receiver_at_hop(rank(), 1 + turned(turn, lane, world() - 1), world());
      if (peer == root_) continue;
      copy({operand::c, rank(), 0, chunk.begin}, {operand::c, peer, 0, chunk.begin}, chunk.size, {},
           i + 1 == count ? flag(second, lane, rank(), peer, epoch) : room{}, emit);
    }
  }

  range whole_;
  ownership owners_;
  int root_;
};

static_assert(protocol<direct_relay>);

}  // namespace untax
