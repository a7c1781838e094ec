#pragma once

#include <cstdint>

#include <untax/core/reduction.hpp>

#include "ops/collectives_common/two_phase_layout.hpp"
#include "ops/common/reduce_target.hpp"

namespace untax {

/// Data that is combined in rank order: reduce_scatter, and all_reduce in one phase (every rank
/// sends everything to every rank, and all combine the same in the same order) or two (each shard
/// goes to its owner, which combines it and passes it on).
///
/// In each round a worker sends one chunk to every peer. When the chunks of all peers have arrived
/// it combines them with its own, which it reads in place.
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
    answer_roll_call(worker, epoch, emit);
    const role mine = role_of(kernel_index, worker);
    const bool passes_on = everywhere_ && !straight_;
    run_rounds(
        mine, [&](int lane, int i) { return send_inputs(lane, i, epoch, emit); },
        [&](int lane, int i) {
          if (i >= chunks_for(rank(), lane).count()) return false;
          if (passes_on) {
            combine_and_pass_on(lane, i, epoch, emit);
          } else {
            combine(lane, i, epoch, result_place(lane, i), false, emit);
          }
          return true;
        },
        [&](int lane, int i) { return passes_on && collect_round(0, lane, i, epoch, emit); });
    end_roll_call(worker, epoch, emit);
  }

 protected:
  /// `rings`: the number of phases with rooms.
  UNTAX_HOST_DEVICE constexpr reduce_protocol(std::int64_t count, reduction how,
                                              reduce_target target, const collective_plan& plan,
                                              int rings) noexcept
      : two_phase_layout(plan, rings, {{count, plan.world}, 0, plan.world},
                         target == reduce_target::everywhere && plan.phases == 1
                             ? count
                             : sharding{count, plan.world}.full()),
        whole_{0, count},
        how_(how),
        everywhere_(target == reduce_target::everywhere),
        straight_(everywhere_ && plan.phases == 1) {}

  /// The chunks for `receiver`.
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

  /// The place of chunk `i` in this rank's result.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr place result_place(int lane, int i) const noexcept {
    const lane_chunks all = chunks_for(rank(), lane);
    return in_c(all.at(i).begin - (everywhere_ ? 0 : all.all.whole.begin));
  }

  /// Combines chunk `i` of all ranks into `to`: at this rank or, if it `fans_out`, at all ranks.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void combine(int lane, int i, std::uint64_t epoch, const place& to,
                                           bool fans_out, Emit&& emit) const {
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
              .to = to,
              .combine = how_,
              .everywhere = fans_out});
    for (int hop = 1; hop < world(); ++hop)
      emit(step{.retire = ring_.room_of(from(source_at_hop(rank(), hop, world())))});
  }

 private:
  /// Combines chunk `i` straight into the rooms of all ranks, this one included, so that the result
  /// is neither stored nor read once more on its way.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void combine_and_pass_on(int lane, int i, std::uint64_t epoch,
                                                       Emit&& emit) const {
    const lane_chunks all = chunks_for(rank(), lane);
    const auto each_peer = [&](auto&& visit) {
      for (int hop = 0; hop < world(); ++hop) {
        const int peer = receiver_at_hop(rank(), hop, world());
        visit(passed_on(peer, lane, i, all, epoch));
      }
    };
    each_peer([&](const parcel& p) { emit(step{.reserve = second_ring_.asked_of(p)}); });
    combine(lane, i, epoch, second_ring_.place_of(passed_on(rank(), lane, i, all, epoch)), true,
            emit);
    each_peer([&](const parcel& p) { emit(step{.publish = second_ring_.room_of(p)}); });
  }

  range whole_;
  reduction how_;
  bool everywhere_;
  bool straight_;
};

static_assert(protocol<reduce_protocol>);

}  // namespace untax
