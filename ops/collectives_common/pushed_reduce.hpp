#pragma once

#include <cstdint>

#include <untax/core/reduction.hpp>

#include "ops/collectives_common/reduce_protocol.hpp"

namespace untax {

/// all_reduce into the callers' results. Shards go to their owners through rooms, as in
/// reduce_scatter, and an owner writes the combined shard into all results at once. No rank reads
/// from a peer, which is slower than writing to it.
///
/// An owner needs no permission to write: a chunk of a rank's input, sent in this epoch, shows that
/// the rank's result is open. `landed`, a flag of each pair of lanes, signals that a share has
/// arrived.
class pushed_reduce : public reduce_protocol {
 public:
  UNTAX_HOST_DEVICE constexpr pushed_reduce(std::int64_t count, reduction how,
                                            const collective_plan& plan) noexcept
      : reduce_protocol(count, how, reduce_target::everywhere, plan, 1),
        first_flag_(reduce_protocol::counters()),
        lanes_(plan.workers) {}

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counters() const noexcept {
    return first_flag_ + lanes_ * world();
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int /*kernel_index*/, int lane, std::uint64_t epoch,
                                           Emit&& emit) const {
    answer_roll_call(lane, epoch, emit);
    const role mine{lane, lane + 1, true, true, false};
    run_rounds(
        mine, [&](int, int i) { return send_inputs(lane, i, epoch, emit); },
        [&](int, int i) {
          if (i >= chunks_for(rank(), lane).count()) return false;
          combine(lane, i, epoch, result_place(lane, i), true, emit);
          return true;
        },
        [](int, int) { return false; });
    for (int hop = 1; has_share(rank(), lane) && hop < world(); ++hop)
      emit(step{.publish = landed(lane, rank(), receiver_at_hop(rank(), hop, world()), epoch)});
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = source_at_hop(rank(), hop, world());
      if (has_share(owner, lane)) emit(step{.acquire = landed(lane, owner, rank(), epoch)});
    }
    end_roll_call(lane, epoch, emit);
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool has_share(int owner, int lane) const noexcept {
    return chunks_for(owner, lane).count() > 0;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room landed(int lane, int from, int to,
                                                        std::uint64_t epoch) const noexcept {
    const int index = first_flag_ + lane * world() + from;
    return {.producer = from, .consumer = to, .number = index, .ready = index, .use = epoch};
  }

  int first_flag_;
  int lanes_;
};

static_assert(protocol<pushed_reduce>);

}  // namespace untax
