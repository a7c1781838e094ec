#pragma once

#include <cstdint>

#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/step.hpp>

namespace untax {

/// A ring buffer of finished tiles between computing workers and senders of the same rank. Each
/// computing worker has `depth` rooms of a tile in the outbox, used in turn. Unlike a whole
/// intermediate matrix, they are small enough to stay in cache.
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

  /// The room of the `index`-th of the `count` tiles that `worker` passes on in each epoch.
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
  /// The place in the outbox of the `index`-th tile of `worker`.
  [[nodiscard]] constexpr place place_of(int worker, int index) const noexcept {
    return {operand::outbox, rank, (worker * depth + index % depth) * tile_m, 0};
  }

  /// Calls `visit(worker, index)` for each tile that a sender moves, where `index` counts the tiles
  /// of a worker, `count_of(worker)` in all. All tiles of a worker go through one sender, so that
  /// every counter has one writer. Tiles are moved in the order in which they are computed.
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
