#pragma once

#include <cstdint>

#include "ops/flash_decode/layout.hpp"

namespace untax {

/// Attention to keys and values that are sharded over the ranks by position.
///
/// Rooms: (source rank, item) of partial results at each consumer, in two sets by epoch parity. A
/// rank's own partial result is combined in place. README.md in this folder has a drawing.
class flash_decode_protocol : public flash_decode_layout {
 public:
  using flash_decode_layout::flash_decode_layout;

  [[nodiscard]] constexpr int kernels() const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
        return 4;
      case pattern::bulk_synchronous:
        return 5;
      case pattern::producer_consumer:
        return 2;
      default:
        return 1;
    }
  }
  [[nodiscard]] constexpr kernel kernel_at(int i) const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
        return i == 0 ? kernel{"attention", 0, plan_.workers} : exchange_kernel(i - 1, 1);
      case pattern::bulk_synchronous:
        return i == 0   ? kernel{"attention", 0, plan_.workers}
               : i == 1 ? kernel{"merge", 1, plan_.workers}
                        : exchange_kernel(i - 2, 2);
      case pattern::producer_consumer:
        return i == 0 ? kernel{"attention", 0, plan_.workers} : kernel{"combine", 0, plan_.senders};
      case pattern::fused_sequential:
        return {"flash_decode", 0, plan_.workers};
      default:
        return {"flash_decode", 0, plan_.senders + plan_.workers};
    }
  }

  template <class Emit>
  constexpr void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    switch (plan_.how) {
      case pattern::bulk_library:
        if (kernel_index == 0) {
          attend(worker, epoch, emit);
          each_own(worker, [&](int item) { merge(item, epoch, emit); });
        } else {
          exchange(kernel_index - 1, worker, epoch, emit);
        }
        return;
      case pattern::bulk_synchronous:
        if (kernel_index == 0) attend(worker, epoch, emit);
        if (kernel_index == 1) each_own(worker, [&](int item) { merge(item, epoch, emit); });
        if (kernel_index > 1) exchange(kernel_index - 2, worker, epoch, emit);
        return;
      case pattern::producer_consumer:
        if (kernel_index == 0) compute(worker, epoch, emit);
        if (kernel_index == 1) move(worker, epoch, emit);
        return;
      case pattern::fused_sequential:
        attend(worker, epoch, emit);
        each_own(worker, [&](int item) {
          merge(item, epoch, emit);
          push(item, epoch, emit);
        });
        combine(worker, epoch, emit);
        return;
      default:
        if (worker < plan_.senders) {
          move(worker, epoch, emit);
        } else {
          compute(worker - plan_.senders, epoch, emit);
        }
    }
  }

 private:
  /// The kernels of the bulk patterns after the local ones.
  [[nodiscard]] constexpr kernel exchange_kernel(int i, int first_stage) const noexcept {
    return i == 0   ? kernel{"gather", first_stage, plan_.workers}
           : i == 1 ? kernel{"barrier", first_stage + 1, 1}
                    : kernel{"combine", first_stage + 2, plan_.workers};
  }
  template <class Emit>
  constexpr void exchange(int i, int worker, std::uint64_t epoch, Emit&& emit) const {
    if (i == 0) each_own(worker, [&](int item) { push(item, epoch, emit); });
    if (i == 1) barrier_.program(epoch, emit);
    if (i == 2) combine(worker, epoch, emit);
  }

  /// The items that a worker merges.
  template <class Visit>
  constexpr void each_own(int worker, Visit&& visit) const {
    strided{worker, plan_.workers}.each(items(), visit);
  }

  template <class Emit>
  constexpr void compute(int worker, std::uint64_t epoch, Emit&& emit) const {
    attend(worker, epoch, emit);
    each_own(worker, [&](int item) { merge(item, epoch, emit); });
  }

  template <class Emit>
  constexpr void move(int sender, std::uint64_t epoch, Emit&& emit) const {
    strided{sender, plan_.senders}.each(items(), [&](int item) {
      emit(step{.acquire = merged(item, epoch)});
      push(item, epoch, emit);
    });
    combine(sender, epoch, emit);
  }

  /// Attends to this worker's splits. Without splits a partial result goes straight to the place
  /// where it is combined.
  template <class Emit>
  constexpr void attend(int worker, std::uint64_t epoch, Emit&& emit) const {
    strided{worker, plan_.workers}.each(items() * plan_.splits, [&](int unit) {
      const int item = unit / plan_.splits;
      const int split = unit % plan_.splits;
      const bool whole = plan_.splits == 1;
      emit(step{.what = action::attend,
                .rows = group(),
                .cols = problem_.head_dim,
                .depth = plan_.splits,
                .from = queries(item),
                .weights = {operand::b, rank(), item, split},
                .to = whole ? slot(rank(), item, rank(), epoch) : of_split(item, split),
                .publish = whole ? merged(item, epoch) : attended(item, split, epoch)});
    });
  }

  template <class Emit>
  constexpr void merge(int item, std::uint64_t epoch, Emit&& emit) const {
    if (plan_.splits == 1) return;
    for (int split = 0; split < plan_.splits; ++split) {
      const room r = attended(item, split, epoch);
      if (r.named()) emit(step{.acquire = r});
    }
    emit(step{.what = action::merge,
              .rows = group(),
              .cols = problem_.head_dim,
              .depth = plan_.splits,
              .from = of_split(item, 0),
              .to = slot(rank(), item, rank(), epoch),
              .publish = merged(item, epoch)});
  }

  /// Sends a partial result to all peers, nearest first.
  template <class Emit>
  constexpr void push(int item, std::uint64_t epoch, Emit&& emit) const {
    const partial_exchange::part mine{slot(rank(), item, rank(), epoch), group()};
    exchange_.push(
        item, epoch, [&](int /*peer*/) { return mine; }, emit);
  }

  /// Combines the partial results of all ranks, in rank order.
  template <class Emit>
  constexpr void combine(int sender, std::uint64_t epoch, Emit&& emit) const {
    strided{sender, senders()}.each(items(), [&](int item) {
      exchange_.await(item, epoch, emit);
      exchange_.merge(item, group(), result(item), epoch, emit);
    });
  }
};

static_assert(protocol<flash_decode_protocol>);

}  // namespace untax
