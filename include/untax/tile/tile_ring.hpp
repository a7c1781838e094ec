#pragma once

#include <cstdint>

#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/step.hpp>

namespace untax {

/// Finished tiles on their way from a computing to a moving worker of the same rank: `depth`
/// tile-sized rooms for each computing worker, in the outbox, used in turn. Small enough to stay in
/// cache, unlike a whole intermediate matrix.
struct tile_ring {
  static constexpr int depth = 2;

  int rank = 0;
  int workers = 1;
  int senders = 1;
  std::int64_t tile_m = 0;
  std::int64_t tile_n = 0;
  counter_block full;   ///< ready counters: [1][workers][depth]
  counter_block empty;  ///< free counters, same shape

  [[nodiscard]] constexpr std::int64_t rows() const noexcept { return workers * depth * tile_m; }
  [[nodiscard]] constexpr std::int64_t cols() const noexcept { return tile_n; }

  /// The room of the `index`-th of `count` tiles that `worker` passes on in each epoch.
  [[nodiscard]] constexpr room at(int worker, int index, int count,
                                  std::uint64_t epoch) const noexcept {
    const int slot = index % depth;
    const auto uses_per_epoch = static_cast<std::uint64_t>(strided{slot, depth}.share_of(count));
    const int ready = full.at(0, worker, slot);
    return {.producer = rank,
            .consumer = rank,
            .number = ready,
            .ready = ready,
            .free = empty.at(0, worker, slot),
            .use = (epoch - 1) * uses_per_epoch + static_cast<std::uint64_t>(index / depth) + 1};
  }
  [[nodiscard]] constexpr place place_of(int worker, int index) const noexcept {
    return {operand::outbox, rank, (worker * depth + index % depth) * tile_m, 0};
  }

  /// Visits what a sender passes on: (worker, index of the tile among its `count_of(worker)`). A
  /// worker's tiles all go through one sender, so that every counter has one writer; tiles are
  /// taken in the order they are computed.
  template <class CountOf, class Visit>
  constexpr void each(int sender, CountOf&& count_of, Visit&& visit) const {
    for (int index = 0, busy = 1; busy > 0; ++index) {
      busy = 0;
      strided{sender, senders}.each(workers, [&](int worker) {
        if (index >= count_of(worker)) return;
        ++busy;
        visit(worker, index);
      });
    }
  }
};

}  // namespace untax
