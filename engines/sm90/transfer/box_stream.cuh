#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// A stage holds a box of so many bytes at most: what the copy engine needs for the rate of the
/// link. Most stages are being read into while the others leave: beside a GEMM, reading takes
/// longer than leaving does.
inline constexpr int box_bytes = 32768;
inline constexpr int box_stages = 6;

/// Boxes of matrices on their way from anywhere to anywhere, through the copy engine of a
/// multiprocessor: each takes one instruction to read and one for each place that it goes to. One
/// thread drives it, always the same one. `Box` is what that thread remembers of a box.
template <class Box>
class box_stream {
 public:
  /// What the block provides, at a multiple of 128 bytes.
  struct alignas(128) memory {
    std::byte stages[box_stages][box_bytes];
    stage_barrier full[box_stages];
    Box boxes[box_stages];

    /// By one thread, before the block is synchronised.
    __device__ void init() {
      for (stage_barrier& barrier : full) barrier.init(1);
    }
  };

  /// Each box goes to so many places.
  __device__ box_stream(memory& shared, int places)
      : shared_(shared), most_on_the_way_(boxes_on_the_way(places)) {}

  /// Asks for a box of `bytes`, what lies outside of the matrix included, and sends on one that has
  /// come. `store(box, from)` asks for all stores of a box that lies at `from`. `stored()` is
  /// called for each box, in their order, when it is written everywhere: a release that follows
  /// covers it, by whoever is synchronised with this thread.
  template <class Store, class Stored>
  __device__ void move(const Box& box, const CUtensorMap& matrix, layer_box_at from,
                       std::uint32_t bytes, const Store& store, const Stored& stored) {
    if (loaded_ - sent_ == in_front) send(store, stored);
    // The box that was there before has left, though it may still be on its way.
    boxes_left_shared<box_stages - in_front>();
    const auto stage = static_cast<int>(loaded_ % box_stages);
    shared_.boxes[stage] = box;
    shared_.full[stage].arrive_and_expect(bytes);
    fetch_layer_box(shared_.stages[stage], matrix, from, shared_.full[stage]);
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
  /// Stores of boxes that have left, but may not be there: beside a GEMM the way to a peer and back
  /// takes several times as long as reading does.
  static constexpr int stores_on_the_way = 7;

  /// Two at least: while one is on its way, another one leaves.
  [[nodiscard]] static __device__ int boxes_on_the_way(int places) {
    return places * 2 > stores_on_the_way ? 2 : stores_on_the_way / (places > 0 ? places : 1);
  }

  /// The first boxes are waited for sooner, as who waits for them has nothing else to do.
  template <class Store, class Stored>
  __device__ void send(const Store& store, const Stored& stored) {
    const auto stage = static_cast<int>(sent_ % box_stages);
    shared_.full[stage].wait(sent_ / box_stages % 2);
    store(shared_.boxes[stage], shared_.stages[stage]);
    end_of_boxes();
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
      boxes_stored<most>();
    } else if constexpr (most > 0) {
      await_all_but<most - 1>(left);
    }
  }

  memory& shared_;
  std::uint32_t loaded_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t written_ = 0;
  int most_on_the_way_;  // boxes
};

}  // namespace untax::sm90
