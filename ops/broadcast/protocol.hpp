#pragma once

#include <cstdint>

#include "ops/broadcast/direct_relay.hpp"
#include "ops/collectives_common/direct_exchange.hpp"
#include "ops/collectives_common/exchange_protocol.hpp"
#include "ops/collectives_common/inner_shares.hpp"
#include "ops/collectives_common/parts.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/collectives_common/two_phase_layout.hpp"

namespace untax {

/// broadcast in two phases: the root sends each chunk to one other rank, which passes it on to the
/// rest, so that the root's link carries the data once. (One phase is an exchange.)
class relay_protocol : public two_phase_layout {
 public:
  /// `plan.world` is at least 2.
  UNTAX_HOST_DEVICE constexpr relay_protocol(std::int64_t count, int root,
                                             const collective_plan& plan) noexcept
      : two_phase_layout(plan, 2, {inner_shares(count, plan.world - 1), root + 1, plan.world},
                         inner_shares(count, plan.world - 1).full()),
        root_(root) {}

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int kernel_index, int worker, std::uint64_t epoch,
                                           Emit&& emit) const {
    if (kernel_index % 2 == 1) return pass_barrier(kernel_index, epoch, emit);
    answer_roll_call(worker, epoch, emit);
    const role mine = role_of(kernel_index, worker);
    run_rounds(
        mine,
        [&](int lane, int i) {
          // Each rank gets the chunks that it passes on.
          const auto to = [&](int peer) { return owned_chunks(peer, lane); };
          return rank() == root_ && send_round(lane, i, epoch, to, emit);
        },
        [&](int lane, int i) {
          return rank() == root_ ? keep_round(lane, i, emit) : relay_round(lane, i, epoch, emit);
        },
        [&](int lane, int i) { return rank() != root_ && collect_round(1, lane, i, epoch, emit); });
    end_roll_call(worker, epoch, emit);
  }

 private:
  /// Copies chunk `i` of every owner into the root's own result.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr bool keep_round(int lane, int i, Emit&& emit) const {
    bool busy = false;
    for (int hop = 1; hop < world(); ++hop) {
      const lane_chunks all = owned_chunks(receiver_at_hop(rank(), hop, world()), lane);
      if (i >= all.count()) continue;
      busy = true;
      const range chunk = all.at(i);
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = chunk.size,
                .from = in_a(chunk.begin),
                .to = in_c(chunk.begin)});
    }
    return busy;
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr bool relay_round(int lane, int i, std::uint64_t epoch,
                                               Emit&& emit) const {
    const lane_chunks all = owned_chunks(rank(), lane);
    const int count = all.count();
    if (i >= count) return false;
    const range chunk = all.at(i);
    const parcel own = parcel_of(root_, rank(), lane, i, count, epoch);
    const place here = ring_.place_of(own);
    emit(step{.acquire = ring_.room_of(own)});
    const auto each_other = [&](auto&& visit) {
      for (int hop = 1; hop < world(); ++hop) {
        const int peer = receiver_at_hop(rank(), hop, world());
        if (peer != root_) visit(passed_on(peer, lane, i, all, epoch));
      }
    };
    each_other([&](const parcel& p) { emit(step{.reserve = second_ring_.asked_of(p)}); });
    // Peers wait for the chunk, so they get it first. It is read from the room, and need not be
    // stored here before.
    each_other([&](const parcel& p) { emit(moved(chunk, here, second_ring_.place_of(p))); });
    each_other([&](const parcel& p) { emit(step{.publish = second_ring_.room_of(p)}); });
    emit(moved(chunk, here, in_c(chunk.begin)));
    emit(step{.retire = ring_.room_of(own)});
    return true;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr step moved(const range& chunk, const place& from,
                                                              const place& to) noexcept {
    return {.what = action::copy, .rows = 1, .cols = chunk.size, .from = from, .to = to};
  }

  int root_;
};

/// Calls `use` with the protocol for the problem.
template <class Use>
auto with_protocol_for(const broadcast_problem& problem, const collective_plan& plan, Use&& use) {
  const root_parts parts{problem.count, problem.root};
  if (plan.phases == 2) {
    if (plan.direct) return use(direct_relay(problem.count, problem.root, plan));
    return use(relay_protocol(problem.count, problem.root, plan));
  }
  if (plan.direct) return use(direct_exchange<root_parts>(parts, plan));
  return use(exchange_protocol<root_parts>(parts, plan));
}

[[nodiscard]] inline collective_need need_of(const broadcast_problem& problem, int world) {
  const std::int64_t share =
      world > 1 ? inner_shares(problem.count, world - 1).full() : problem.count;
  return {"broadcast", problem.type, share, problem.count, problem.count, true, 2};
}

static_assert(protocol<relay_protocol>);

}  // namespace untax
