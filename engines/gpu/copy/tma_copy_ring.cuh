#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include "engines/gpu/copy/matrix_at.hpp"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// Most stages are being loaded while the rest are stored, since loads take longer beside a GEMM.
inline constexpr int ring_stages = 6;

/// A ring of stages through which TMA copies tiles: one instruction loads a tile, and one
/// instruction per destination stores it. Only one thread may call it, always the same. `Tile`
/// holds the data that this thread needs for each TMA tile in the ring.
template <class Tile>
class tma_copy_ring {
 public:
  /// The ring's shared memory, at a multiple of 128 bytes.
  struct alignas(128) memory {
    std::byte stages[ring_stages][tma_tile_bytes];
    stage_barrier full[ring_stages];
    Tile tma_tiles[ring_stages];

    /// One thread calls this before the block synchronises.
    __device__ void init() {
      for (stage_barrier& barrier : full) barrier.init(1);
    }
  };

  /// `places`: the number of destinations of each TMA tile.
  __device__ tma_copy_ring(memory& shared, int places)
      : shared_(shared), most_on_the_way_(tma_tiles_on_the_way(places)) {}

  /// Issues the load of a TMA tile of `bytes`, parts outside the matrix included. With `in_front`
  /// loads issued, it first stores the oldest tile: `store(TMA tile, from)` issues all its stores.
  /// `stored()` is called for each tile, in order, when it is written everywhere: a later release,
  /// by any thread that is synchronised with this one, covers the tile.
  template <class Store, class Stored>
  __device__ void move(const Tile& tma_tile, const CUtensorMap& matrix, tma_layer_coord from,
                       std::uint32_t bytes, const Store& store, const Stored& stored) {
    if (loaded_ - sent_ == in_front) send(store, stored);
    // Waits until the previous TMA tile of the stage has been read; it may not be written yet.
    tma_store_wait_read<ring_stages - in_front>();
    const auto stage = static_cast<int>(loaded_ % ring_stages);
    shared_.tma_tiles[stage] = tma_tile;
    shared_.full[stage].arrive_and_expect(bytes);
    tma_load_layer(shared_.stages[stage], matrix, from, shared_.full[stage]);
    ++loaded_;
  }

  /// Stores all tiles that have been loaded; a caller drains the ring when it has nothing to load
  /// yet.
  template <class Store, class Stored>
  __device__ void drain(const Store& store, const Stored& stored) {
    while (sent_ < loaded_) send(store, stored);
  }
  /// Drains the ring and waits until all tiles are written. This ends the stream of tiles.
  template <class Store, class Stored>
  __device__ void finish(const Store& store, const Stored& stored) {
    drain(store, stored);
    while (written_ < sent_) {
      await_all_but<stores_on_the_way>(static_cast<int>(sent_ - written_) - 1);
      ++written_;
      stored();
    }
  }

 private:
  static constexpr int in_front = 4;
  /// The maximum of stores in flight: beside a GEMM the round trip to a peer takes several times as
  /// long as a load.
  static constexpr int stores_on_the_way = 7;

  /// At least two: one is read from shared memory while another one is in flight.
  [[nodiscard]] static __device__ int tma_tiles_on_the_way(int places) {
    return places * 2 > stores_on_the_way ? 2 : stores_on_the_way / (places > 0 ? places : 1);
  }

  /// Stores the oldest tile. First tiles are awaited sooner, since their receivers are idle.
  template <class Store, class Stored>
  __device__ void send(const Store& store, const Stored& stored) {
    const auto stage = static_cast<int>(sent_ % ring_stages);
    shared_.full[stage].wait(sent_ / ring_stages % 2);
    store(shared_.tma_tiles[stage], shared_.stages[stage]);
    tma_store_commit();
    const int at_first = 1 + static_cast<int>(++sent_) / 2;
    const int most = at_first < most_on_the_way_ ? at_first : most_on_the_way_;
    if (static_cast<int>(sent_ - written_) <= most) return;
    await_all_but<stores_on_the_way>(most);
    ++written_;
    stored();
  }
  /// Waits until at most `left` TMA tiles have stores in flight.
  template <int most>
  __device__ void await_all_but(int left) {
    if (left >= most) {
      tma_store_wait<most>();
    } else if constexpr (most > 0) {
      await_all_but<most - 1>(left);
    }
  }

  memory& shared_;
  std::uint32_t loaded_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t written_ = 0;
  int most_on_the_way_;  // TMA tiles in flight
};

}  // namespace untax::gpu
