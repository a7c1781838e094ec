#pragma once

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/flash_attention/block.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// The producer, one thread of a block: takes tiles and loads their queries, keys and values.
///
/// Blocks of keys are loaded from the last to the first, and the keys of the next block before the
/// values of the current block: this is the order in which they are multiplied. The first keys of a
/// tile are loaded before its queries, whose buffer becomes free later than a ring stage.
template <flash_config config>
class flash_producer {
  using memory = flash_memory<config>;

 public:
  __device__ flash_producer(const flash_arguments& a, memory& shared)
      : a_(a), shared_(shared), positions_(a.positions) {}

  __device__ void run() {
    flash_tile next = next_tile();
    while (next.rows > 0) {
      const flash_tile tile = next;
      column_ = tile.head / a_.shape.group() * config.width;
      const int last = tile.blocks - 1;
      if (last >= 0) bring(a_.keys, tile, last);
      hand_over(tile);
      // Taking the next tile has a long latency, so loads into the ring are issued first.
      int block = last;
#pragma unroll 1
      do {
        if (block > 0) bring(a_.keys, tile, block - 1);
        if (block >= 0) bring(a_.values, tile, block);
        if (block == last) next = next_tile();
      } while (--block >= 0);
    }
    hand_over(next);
    leave();
  }

 private:
  /// The next tile that is not empty; `rows` is 0 if there is none.
  [[nodiscard]] __device__ flash_tile next_tile() {
    for (;;) {
      const int position = positions_.next();
      if (position < 0) return {};
      const int number = __ldg(a_.order + position);
      const int sequence = a_.tiles.batch_of(number);
      const flash_tile tile =
          a_.tiles.tile(number, flash_tiles::range_of(sequence, a_.shape.queries, a_.query_begins),
                        flash_tiles::range_of(sequence, a_.shape.keys, a_.key_begins));
      if (tile.rows > 0) return tile;
    }
  }

  /// The last block to leave resets the counters to 0.
  __device__ void leave() const {
    __threadfence();
    if (atomicAdd(a_.left, 1) + 1 < static_cast<int>(gridDim.x)) return;
    if (left_out(mutant::attend_counters)) return;
    a_.positions.taken[0] = 0;
    a_.positions.taken[1] = 0;
    *a_.left = 0;
  }

  __device__ void hand_over(const flash_tile& tile) {
    shared_.tile_empty.wait(handed_ ^ 1U);
    shared_.tiles[handed_] = tile;
    handed_ ^= 1U;
    if (tile.blocks == 0) return shared_.tile_full.arrive();
    shared_.tile_full.arrive_and_expect(config.query_bytes());
#pragma unroll
    for (int part = 0; part < memory::parts; ++part)
      tma_load(shared_.queries + part * memory::query_part_bytes, a_.queries,
               {tile.head * config.width + part * 64, tile.row}, shared_.tile_full);
  }

  __device__ void bring(const CUtensorMap& rows, const flash_tile& tile, int block) {
    auto& full = shared_.full[at_.stage];
    shared_.empty[at_.stage].wait(at_.parity ^ 1U);
    full.arrive_and_expect(config.place_bytes());
    const int behind = max(0, (block + 1) * config.keys - tile.keys);
    const int row = tile.key + block * config.keys + config.keys - behind;
#pragma unroll
    for (int part = 0; part < memory::parts; ++part)
      tma_load_layer(shared_.ring[at_.stage] + part * memory::part_bytes, rows,
                     {column_ + part * 64, behind, row}, full);
    at_.template advance<config.places>();
  }

  const flash_arguments& a_;
  memory& shared_;
  sm_queue_cursor positions_;
  ring_cursor at_;
  std::uint32_t handed_ = 0;
  int column_ = 0;  // the tile's first column in keys and values
};

}  // namespace untax::gpu
