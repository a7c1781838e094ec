#pragma once

#include <cstdint>

#include <untax/core/reduction.hpp>

#include "ops/collectives_common/two_phase_layout.hpp"

namespace untax {

/// Where the combination of all inputs is wanted.
enum class reduce_target : std::uint8_t { owner, everywhere };

/// Data that is combined in rank order: reduce_scatter, and all_reduce in one phase (everybody
/// sends everything to everybody, and all combine the same in the same order) or two (each shard
/// goes to its owner, who combines it and passes it on).
///
/// In each round a worker sends one chunk to every peer; when the chunks of all peers have come it
/// combines them with its own, which it reads where it lies.
class reduce_protocol : public two_phase_layout {
 public:
  UNTAX_HOST_DEVICE constexpr reduce_protocol(std::int64_t count, reduction how,
                                              reduce_target target,
                                              const collective_plan& plan) noexcept
      : reduce_protocol(count, how, target, plan,
                        target == reduce_target::everywhere ? plan.phases : 1) {}

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int kernel_index, int worker, std::uint64_t epoch,
                                           Emit&& emit) const {
    if (kernel_index % 2 == 1) return pass_barrier(kernel_index, epoch, emit);
    const role mine = role_of(kernel_index, worker);
    const bool passes_on = everywhere_ && !straight_;
    run_rounds(
        mine, passes_on, epoch, [&](int i) { return send_inputs(mine.lane, i, epoch, emit); },
        [&](int i) {
          if (i >= chunks_for(rank(), mine.lane).count()) return false;
          combine(mine.lane, i, epoch, false, emit);
          if (passes_on) pass_on(mine.lane, i, epoch, emit);
          return true;
        },
        emit);
  }

 protected:
  /// With rings of rooms for so many phases.
  UNTAX_HOST_DEVICE constexpr reduce_protocol(std::int64_t count, reduction how,
                                              reduce_target target, const collective_plan& plan,
                                              int rings) noexcept
      : two_phase_layout(plan, rings, {{count, plan.world}, 0, plan.world}, -1),
        whole_{0, count},
        how_(how),
        everywhere_(target == reduce_target::everywhere),
        straight_(everywhere_ && plan.phases == 1) {}

  /// What goes to `receiver`.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr lane_chunks chunks_for(int receiver,
                                                                   int lane) const noexcept {
    return straight_ ? chunks_of(whole_, lane) : owned_chunks(receiver, lane);
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr bool send_inputs(int lane, int i, std::uint64_t epoch,
                                               Emit&& emit) const {
    return send_round(
        lane, i, epoch, [&](int peer) { return chunks_for(peer, lane); }, emit);
  }

  /// Chunk `i` of all ranks into the own result or, if it `spreads`, into everybody's.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void combine(int lane, int i, std::uint64_t epoch, bool spreads,
                                           Emit&& emit) const {
    const lane_chunks all = chunks_for(rank(), lane);
    const range chunk = all.at(i);
    const auto from = [&](int source) {
      return parcel_of(source, rank(), lane, i, all.count(), epoch);
    };
    for (int hop = 1; hop < world(); ++hop)
      emit(step{.acquire = ring_.room_of(from(source_at_hop(rank(), hop, world())))});
    const place addends = ring_.place_of(from(0));
    emit(step{.what = action::reduce,
              .rows = 1,
              .cols = chunk.size,
              .depth = world(),
              .from = addends,
              .weights = in_a(chunk.begin),
              .to = in_c(everywhere_ ? chunk.begin : chunk.begin - all.all.whole.begin),
              .combine = how_,
              .everywhere = spreads});
    for (int hop = 1; hop < world(); ++hop)
      emit(step{.retire = ring_.room_of(from(source_at_hop(rank(), hop, world())))});
  }

 private:
  range whole_;
  reduction how_;
  bool everywhere_;
  bool straight_;
};

static_assert(protocol<reduce_protocol>);

}  // namespace untax
