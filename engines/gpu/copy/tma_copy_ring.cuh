#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include "engines/gpu/gemm/matrix_at.hpp"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// Most stages are being loaded while the others are stored: beside a GEMM, a load takes longer.
inline constexpr int ring_stages = 6;

/// A ring of stages through which TMA moves tiles from one memory to others: one instruction to
/// load a tile, and one for each place where it is stored. One thread drives it, always the same
/// one. `Tile` is what that thread remembers of a TMA tile.
template <class Tile>
class tma_copy_ring {
 public:
  /// Shared memory of the block, at a multiple of 128 bytes.
  struct alignas(128) memory {
    std::byte stages[ring_stages][tma_tile_bytes];
    stage_barrier full[ring_stages];
    Tile tma_tiles[ring_stages];

    /// By one thread, before the block is synchronised.
    __device__ void init() {
      for (stage_barrier& barrier : full) barrier.init(1);
    }
  };

  /// Each TMA tile is stored to so many places.
  __device__ tma_copy_ring(memory& shared, int places)
      : shared_(shared), most_on_the_way_(tma_tiles_on_the_way(places)) {}

  /// Issues the load of a TMA tile of `bytes`, with what lies outside of the matrix, and stores one
  /// that has been loaded. `store(TMA tile, from)` issues all stores of a TMA tile that lies at
  /// `from`. `stored()` is called for each TMA tile, in order, when it is written everywhere: a
  /// release after that, by any thread that is synchronised with this one, covers it.
  template <class Store, class Stored>
  __device__ void move(const Tile& tma_tile, const CUtensorMap& matrix, tma_layer_coord from,
                       std::uint32_t bytes, const Store& store, const Stored& stored) {
    if (loaded_ - sent_ == in_front) send(store, stored);
    // The TMA tile that was there before has been read, though it may not be written yet.
    tma_store_wait_read<ring_stages - in_front>();
    const auto stage = static_cast<int>(loaded_ % ring_stages);
    shared_.tma_tiles[stage] = tma_tile;
    shared_.full[stage].arrive_and_expect(bytes);
    tma_load_layer(shared_.stages[stage], matrix, from, shared_.full[stage]);
    ++loaded_;
  }

  /// Stores what has been loaded, when there is nothing to load yet.
  template <class Store, class Stored>
  __device__ void drain(const Store& store, const Stored& stored) {
    while (sent_ < loaded_) send(store, stored);
  }
  /// The same, and returns when all of it is written. The stream has ended then.
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
  /// Stores of TMA tiles in flight: beside a GEMM the round trip to a peer takes several times as
  /// long as a load.
  static constexpr int stores_on_the_way = 7;

  /// Two at least: while one is in flight, another one is read.
  [[nodiscard]] static __device__ int tma_tiles_on_the_way(int places) {
    return places * 2 > stores_on_the_way ? 2 : stores_on_the_way / (places > 0 ? places : 1);
  }

  /// The first TMA tiles are waited for sooner, since their receivers have nothing else to do.
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
  /// Waits until `left` stores at most are in flight.
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
  int most_on_the_way_;  // TMA tiles
};

}  // namespace untax::gpu
