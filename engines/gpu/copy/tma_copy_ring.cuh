#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include "engines/gpu/gemm/matrix_at.hpp"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// Most stages are being read into while the others leave: beside a GEMM, reading takes longer than
/// leaving does.
inline constexpr int ring_stages = 6;

/// TMA tiles of matrices on their way from anywhere to anywhere, through TMA: each takes one
/// instruction to read and one for each place that it goes to. One thread drives it, always the
/// same one. `Tile` is what that thread remembers of a TMA tile.
template <class Tile>
class tma_copy_ring {
 public:
  /// What the block provides, at a multiple of 128 bytes.
  struct alignas(128) memory {
    std::byte stages[ring_stages][tma_tile_bytes];
    stage_barrier full[ring_stages];
    Tile tma_tiles[ring_stages];

    /// By one thread, before the block is synchronised.
    __device__ void init() {
      for (stage_barrier& barrier : full) barrier.init(1);
    }
  };

  /// Each TMA tile goes to so many places.
  __device__ tma_copy_ring(memory& shared, int places)
      : shared_(shared), most_on_the_way_(tma_tiles_on_the_way(places)) {}

  /// Asks for a TMA tile of `bytes`, what lies outside of the matrix included, and sends on one
  /// that has come. `store(TMA tile, from)` asks for all stores of a TMA tile that lies at `from`.
  /// `stored()` is called for each TMA tile, in their order, when it is written everywhere: a
  /// release that follows covers it, by whoever is synchronised with this thread.
  template <class Store, class Stored>
  __device__ void move(const Tile& tma_tile, const CUtensorMap& matrix, tma_layer_coord from,
                       std::uint32_t bytes, const Store& store, const Stored& stored) {
    if (loaded_ - sent_ == in_front) send(store, stored);
    // The TMA tile that was there before has left, though it may still be on its way.
    tma_store_wait_read<ring_stages - in_front>();
    const auto stage = static_cast<int>(loaded_ % ring_stages);
    shared_.tma_tiles[stage] = tma_tile;
    shared_.full[stage].arrive_and_expect(bytes);
    tma_load_layer(shared_.stages[stage], matrix, from, shared_.full[stage]);
    ++loaded_;
  }

  /// Sends on what has been asked for, as when there is nothing to ask for yet.
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
  /// Stores of TMA tiles that have left, but may not be there: beside a GEMM the way to a peer and
  /// back takes several times as long as reading does.
  static constexpr int stores_on_the_way = 7;

  /// Two at least: while one is on its way, another one leaves.
  [[nodiscard]] static __device__ int tma_tiles_on_the_way(int places) {
    return places * 2 > stores_on_the_way ? 2 : stores_on_the_way / (places > 0 ? places : 1);
  }

  /// The first TMA tiles are waited for sooner, as who waits for them has nothing else to do.
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
  /// Until `left` at most, of those that have left, are not yet written.
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
