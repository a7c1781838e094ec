#pragma once

#include <cstdint>

#include <untax/core/reduction.hpp>

#include "ops/collectives_common/direct_layout.hpp"
#include "ops/collectives_common/reduce_protocol.hpp"

namespace untax {

/// Data that is combined in rank order in place: reduce_scatter, and all_reduce in one phase (every
/// rank combines everything) or two (the owner of a shard combines it and writes it into all
/// results).
///
/// `first` permits to read an input and, with two phases, to write the result. `second` signals
/// that the input was read or, with two phases, that a shard has arrived: its writer has read all
/// inputs of it.
class direct_reduce : public direct_layout {
 public:
  UNTAX_HOST_DEVICE constexpr direct_reduce(std::int64_t count, reduction how, reduce_target target,
                                            const collective_plan& plan) noexcept
      : direct_layout(plan),
        whole_{0, count},
        shards_{count, plan.world},
        how_(how),
        everywhere_(target == reduce_target::everywhere),
        straight_(everywhere_ && plan.phases == 1) {}

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int /*kernel_index*/, int lane, std::uint64_t epoch,
                                           Emit&& emit) const {
    const bool passes_on = everywhere_ && !straight_;
    span known;
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      if (share(owner, lane, known).empty()) continue;
      emit(step{.publish = flag(first, lane, rank(), owner, epoch)});
    }
    if (const range mine = share(rank(), lane, known); !mine.empty()) {
      combine(mine, lane, passes_on, epoch, emit);
      tell_all(lane, epoch, emit);
    }
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = source_at_hop(rank(), hop, world());
      if (share(owner, lane, known).empty()) continue;
      emit(step{.acquire = flag(second, lane, owner, rank(), epoch)});
    }
  }

 private:
  /// The range that lane `lane` of `owner` combines.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range share(int owner, int lane,
                                                        span& known) const noexcept {
    return share_of(straight_ ? whole_ : shards_.of(owner), lane, known);
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void combine(const range& mine, int lane, bool passes_on,
                                           std::uint64_t epoch, Emit&& emit) const {
    for (int hop = 1; hop < world(); ++hop)
      emit(step{.acquire = flag(first, lane, source_at_hop(rank(), hop, world()), rank(), epoch)});
    const std::int64_t moved = everywhere_ ? 0 : -shards_.of(rank()).begin;
    each_chunk(mine, [&](const range& chunk) {
      const place inputs{operand::a, rank(), 0, chunk.begin};
      emit(step{.what = action::reduce,
                .rows = 1,
                .cols = chunk.size,
                .depth = world(),
                .from = inputs,
                .weights = inputs,
                .to = {operand::c, rank(), 0, chunk.begin + moved},
                .combine = how_});
      if (passes_on) pass_on(chunk, lane, emit);
    });
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void pass_on(const range& chunk, int lane, Emit&& emit) const {
    for (int i = 0; i + 1 < world(); ++i) {
      const int peer = receiver_at_hop(rank(), 1 + turned(i, lane, world() - 1), world());
      copy({operand::c, rank(), 0, chunk.begin}, {operand::c, peer, 0, chunk.begin}, chunk.size, {},
           {}, emit);
    }
  }

  /// Signals that all inputs were read or, if the result is passed on, that a shard has arrived.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void tell_all(int lane, std::uint64_t epoch, Emit&& emit) const {
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      emit(step{.publish = flag(second, lane, rank(), source, epoch)});
    }
  }

  range whole_;
  sharding shards_;
  reduction how_;
  bool everywhere_;
  bool straight_;
};

static_assert(protocol<direct_reduce>);

}  // namespace untax
