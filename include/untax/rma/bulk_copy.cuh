#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <untax/rma/bulk_ring.cuh>
#include <untax/rma/device_copy.cuh>

// put, get and copy for a block, done by TMA, with which fewer blocks fill a link than with
// ordinary stores. They are for large copies, and need a ring of shared memory. All threads of the
// block call them with the same arguments. Preconditions are those of rma/device_copy.cuh. When one
// of them returns, the bytes are at their destination, and a signal of the block covers them.
//
// TMA moves whole 16-byte words. Heads and tails are moved by ordinary stores, and so is everything
// if source and destination differ in alignment or rows are short.

namespace untax {

/// A block of a kernel, with or without a guard.
template <class G>
concept device_block_group = device_group<G> && std::derived_from<G, device_block>;

namespace detail {

/// For rows shorter than this, the work of TMA for each row takes longer than the row itself.
inline constexpr std::int64_t least_bulk_bytes = 1024;

template <int narrowest, device_block_group G, class Ring>
__device__ void bulk_move(const G& group, Ring& ring, byte_rows to, byte_rows from,
                          std::int64_t rows, std::int64_t bytes) {
  const auto target = reinterpret_cast<std::uintptr_t>(to.data);
  const auto source = reinterpret_cast<std::uintptr_t>(from.data);
  const auto strides = static_cast<std::uint64_t>(to.stride | from.stride);
  const bool alike = ((target ^ source | strides) & 15U) == 0;
  if (!alike || bytes < least_bulk_bytes) {
    // A single row may have more words than 32 bits count.
    if (rows == 1) {
      move_bytes<narrowest, row_words_in_flight>(group, const_cast<std::byte*>(to.data), from.data,
                                                 bytes);
    } else {
      move_byte_rows<narrowest>(group, to, from, rows, bytes);
    }
    group.sync();
    return;
  }
  const auto head = static_cast<std::int64_t>(-target & 15U);
  const std::int64_t body = (bytes - head) & ~std::int64_t{15};
  group.sync();  // orders the writes of the other threads to the source
  if (group.thread_rank() == 0) {
    ring.move({const_cast<std::byte*>(to.data) + head, from.data + head, to.stride, from.stride,
               rows, body});
  } else {
    // The other threads move the edges meanwhile.
    const int me = group.thread_rank() - 1;
    const int everybody = group.size() - 1;
    move_row_edges<narrowest>(to, from, rows, {0, head}, me, everybody);
    move_row_edges<narrowest>(to, from, rows, {head + body, bytes}, me, everybody);
  }
  group.sync();
}

}  // namespace detail

/// Copies `count` elements between any two addresses. The block must have two threads or more.
template <device_block_group G, class Ring, transferable T>
__device__ void bulk_copy(const G& block, Ring& ring, T* to, const std::type_identity_t<T>* from,
                          std::int64_t count) {
  if (count == 0) return;
  detail::bulk_move<detail::narrowest_word<T>>(block, ring,
                                               {reinterpret_cast<const std::byte*>(to), 0},
                                               {reinterpret_cast<const std::byte*>(from), 0}, 1,
                                               count * static_cast<std::int64_t>(sizeof(T)));
}

/// Copies the elements of a tile that are inside `bounds`. The block must have two threads or more.
template <device_block_group G, class Ring, transferable T>
__device__ void bulk_copy(const G& block, Ring& ring, tile_view<T> to,
                          std::type_identity_t<tile_view<const T>> from, tile_bounds bounds) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t rows = detail::clamped(bounds.rows, to.rows);
  const std::int64_t cols = detail::clamped(bounds.cols, to.cols);
  if (rows == 0 || cols == 0) return;
  if (to.stride == cols && from.stride == cols) {
    bulk_copy(block, ring, to.data, from.data, rows * cols);
    return;
  }
  detail::bulk_move<detail::narrowest_word<T>>(
      block, ring, {reinterpret_cast<const std::byte*>(to.data), to.stride * size},
      {reinterpret_cast<const std::byte*>(from.data), from.stride * size}, rows, cols * size);
}

/// Copies `count` elements of this rank to a peer, as `bulk_copy`.
template <device_block_group G, class Ring, transferable T>
__device__ void bulk_put(const G& block, Ring& ring, T* to, const std::type_identity_t<T>* from,
                         std::int64_t count) {
  bulk_copy(block, ring, to, from, count);
}

/// Copies `count` elements of a peer to this rank, as `bulk_copy`.
template <device_block_group G, class Ring, transferable T>
__device__ void bulk_get(const G& block, Ring& ring, T* to, const std::type_identity_t<T>* from,
                         std::int64_t count) {
  bulk_copy(block, ring, to, from, count);
}

}  // namespace untax
