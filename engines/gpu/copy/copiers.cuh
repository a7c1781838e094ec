#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/bulk_ring.cuh>
#include <untax/rma/device_group.cuh>

#include "engines/gpu/copy/word_cursor.cuh"

namespace untax::gpu {

/// Rows of 16-byte words that a warp moves with ordinary loads and stores: a few registers, so that
/// it can do so beside tensor cores. Nobody is synchronised.
class warp_copy {
 public:
  /// Reads once and writes to `copies` places: copy i lies at `place_of(i)`, an address of 16-bit
  /// elements. Rows begin at multiples of 16 bytes, and are multiples of 16 bytes long.
  template <class PlaceOf>
  __device__ static void spread(int copies, const PlaceOf& place_of, std::int64_t to_stride,
                                const std::uint16_t* from, std::int64_t from_stride,
                                std::int64_t rows, std::int64_t columns) {
    // What lies without gaps on both sides is one row.
    const bool dense = to_stride == columns && from_stride == columns;
    const auto total = static_cast<int>(rows * columns / elements);
    const int words = dense ? total : static_cast<int>(columns / elements);
    const auto* const source = reinterpret_cast<const uint4*>(from);
    const std::int64_t to_step = to_stride / elements;
    const std::int64_t from_step = from_stride / elements;
    word_cursor<32> at{words, device_warp::thread_rank()};
#pragma unroll 1
    for (int i = device_warp::thread_rank(); i < total; i += 32 * at_once) {
      uint4 held[at_once];
      word_cursor<32> next = at;
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (i + 32 * k < total) held[k] = source[next.row * from_step + next.word];
        next.advance();
      }
#pragma unroll 1
      for (int copy = 0; copy < copies; ++copy) {
        auto* const target = reinterpret_cast<uint4*>(place_of(copy));
        word_cursor<32> writing = at;
#pragma unroll
        for (int k = 0; k < at_once; ++k) {
          if (i + 32 * k < total) target[writing.row * to_step + writing.word] = held[k];
          writing.advance();
        }
      }
      at = next;
    }
  }

 private:
  static constexpr int elements = 8;  // of a word
  /// Words of a thread that are on their way together: 132 warps that wait 1.2 us for theirs read
  /// 450 GB/s then, more than the link takes.
  static constexpr int at_once = 8;
};

// How a warp moves rows of elements of 2 bytes to one or several places, of which `place_of(i)` is
// where copy i begins. Rows begin at multiples of 16 bytes, and are multiples of 16 bytes long.
// After `complete` a release of any thread of the warp that is synchronised covers them.

/// With its own loads and stores.
struct by_stores {
  template <class PlaceOf>
  __device__ static void move(int copies, const PlaceOf& place_of, std::int64_t to_stride,
                              const std::uint16_t* from, std::int64_t from_stride, int rows,
                              int columns) {
    warp_copy::spread(copies, place_of, to_stride, from, from_stride, rows, columns);
  }
  __device__ static void complete() {}
};

/// Its first thread issues TMA copies.
template <class Ring>
struct by_bulk_copies {
  Ring& ring;

  template <class PlaceOf>
  __device__ void move(int copies, const PlaceOf& place_of, std::int64_t to_stride,
                       const std::uint16_t* from, std::int64_t from_stride, std::int64_t rows,
                       std::int64_t columns) const {
    if (device_warp::thread_rank() > 0) return;
    const bool dense = to_stride == columns && from_stride == columns;
    ring.post({nullptr, reinterpret_cast<const std::byte*>(from), to_stride * 2, from_stride * 2,
               dense ? 1 : rows, (dense ? rows : 1) * columns * 2},
              copies, [&](int copy) { return reinterpret_cast<std::byte*>(place_of(copy)); });
  }
  __device__ void complete() const {
    if (device_warp::thread_rank() == 0) ring.finish();
  }
};

}  // namespace untax::gpu
