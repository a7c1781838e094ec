#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/bulk_ring.cuh>

#include "engines/gpu/copy/warp_copy.cuh"

namespace untax::gpu {

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
