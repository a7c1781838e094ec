#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <untax/rma/copy.hpp>
#include <untax/rma/device_group.cuh>
#include <untax/rma/tile_view.hpp>
#include <untax/rma/vector_copy.cuh>

// The verbs of rma/copy.hpp for groups of a kernel; all threads of a group call them with the same
// arguments. They choose the width of their accesses from the addresses: they are fast if source
// and destination are equal modulo 16 bytes. Each returns when all threads of the group have issued
// their stores. This signals nothing: a peer may read the bytes only after a signal.
//
// A kernel cannot throw, so the conditions that host verbs check are preconditions here. Addresses
// are not null and multiples of the element's alignment, sizes are not negative, source and
// destination do not overlap, and both tiles have the same shape and a stride of at least their
// columns. Pointers to symmetric memory must not be marked `const __restrict__` in a kernel that
// waits for the data behind them: the compiler may then read these before the wait.

namespace untax {

namespace detail {

/// The narrowest word in which elements are distributed over the threads: their alignment, or 16
/// bytes.
template <class T>
inline constexpr int narrowest_word = alignof(T) < 16 ? static_cast<int>(alignof(T)) : 16;

/// The group's threads move `bytes` bytes. They are not synchronised.
template <int narrowest, int most = words_in_flight, device_group G>
__device__ void move_bytes(const G& group, std::byte* to, const std::byte* from,
                           std::int64_t bytes) {
  const auto target = reinterpret_cast<std::uintptr_t>(to);
  const auto source = reinterpret_cast<std::uintptr_t>(from);
  // A message of at most one word for each thread: the general way through the rest would take
  // longer than the words themselves.
  if (bytes <= std::int64_t{16} * group.size() &&
      ((target | source | static_cast<std::uint64_t>(bytes)) & 15U) == 0) {
    const int at = 16 * group.thread_rank();
    if (at < bytes) *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
    return;
  }
  const int width = widest_word<narrowest>(target ^ source);
  // The bytes before the first whole word of the destination, and after the last.
  std::int64_t head = static_cast<std::int64_t>(-target & (width - 1U));
  if (head > bytes) head = bytes;
  const std::int64_t words = (bytes - head) / width;
  const int me = group.thread_rank();
  const int everybody = group.size();
  // The edges first: their variables need no registers while the body is moved.
  if (width > narrowest) {
    const std::int64_t body_end = head + words * width;
    move_edge<narrowest>(to, from, head, me, everybody);
    move_edge<narrowest>(to + body_end, from + body_end, bytes - body_end, me, everybody);
  }
  with_word<narrowest>(
      width, [&]<int w>() { move_words<w, most>(to + head, from + head, words, me, everybody); });
}

/// As move_bytes, for rows of `bytes` bytes each.
template <int narrowest, device_group G>
__device__ void move_byte_rows(const G& group, byte_rows to, byte_rows from, std::int64_t rows,
                               std::int64_t bytes) {
  const auto target = reinterpret_cast<std::uintptr_t>(to.data);
  const auto source = reinterpret_cast<std::uintptr_t>(from.data);
  const auto strides = static_cast<std::uint64_t>(to.stride | from.stride);
  const int width = widest_word<narrowest>((target ^ source) | strides);
  std::int64_t head = static_cast<std::int64_t>(-target & (width - 1U));
  if (head > bytes) head = bytes;
  const std::int64_t words = (bytes - head) / width;
  const int me = group.thread_rank();
  const int everybody = group.size();
  if (width > narrowest) {
    const std::int64_t body_end = head + words * width;
    move_row_edges<narrowest>(to, from, rows, {0, head}, me, everybody);
    move_row_edges<narrowest>(to, from, rows, {body_end, bytes}, me, everybody);
  }
  if (words == 0) return;
  with_word<narrowest>(width, [&]<int w>() {
    move_word_rows<w>({to.data + head, to.stride}, {from.data + head, from.stride}, rows,
                      static_cast<std::int32_t>(words), me, everybody);
  });
}

template <class T, device_group G>
__device__ void move_elements(const G& group, T* to, const T* from, std::int64_t count) {
  move_bytes<narrowest_word<T>>(group, reinterpret_cast<std::byte*>(to),
                                reinterpret_cast<const std::byte*>(from),
                                count * static_cast<std::int64_t>(sizeof(T)));
}

template <class T, device_group G>
__device__ void move_tile(const G& group, tile_view<T> to, tile_view<const T> from,
                          tile_bounds bounds) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t rows = clamped(bounds.rows, to.rows);
  const std::int64_t cols = clamped(bounds.cols, to.cols);
  if (rows == 0 || cols == 0) return;
  if (rows == 1 || (to.stride == cols && from.stride == cols)) {
    move_bytes<narrowest_word<T>, row_words_in_flight>(
        group, reinterpret_cast<std::byte*>(to.data), reinterpret_cast<const std::byte*>(from.data),
        rows * cols * size);
    return;
  }
  move_byte_rows<narrowest_word<T>>(
      group, {reinterpret_cast<const std::byte*>(to.data), to.stride * size},
      {reinterpret_cast<const std::byte*>(from.data), from.stride * size}, rows, cols * size);
}

}  // namespace detail

/// Copies `count` elements between any two addresses.
template <device_group G, transferable T>
__device__ void copy(const G& group, T* to, const std::type_identity_t<T>* from,
                     std::int64_t count) {
  detail::move_elements<T>(group, to, from, count);
  group.sync();
}

/// Copies `count` elements of this rank to a peer.
template <device_group G, transferable T>
__device__ void put(const G& group, T* to, const std::type_identity_t<T>* from,
                    std::int64_t count) {
  copy(group, to, from, count);
}

/// Copies `count` elements of a peer to this rank.
template <device_group G, transferable T>
__device__ void get(const G& group, T* to, const std::type_identity_t<T>* from,
                    std::int64_t count) {
  copy(group, to, from, count);
}

/// Copies the elements of a tile that are inside `bounds`. A row has fewer than 2^31 words of the
/// element's alignment.
///
/// Rows of a peer that are a multiple of 12 KB apart load the links to it unevenly, which lowers
/// the rate whatever the order of the accesses. 128 bytes of padding avoid it.
template <device_group G, transferable T>
__device__ void copy(const G& group, tile_view<T> to, std::type_identity_t<tile_view<const T>> from,
                     tile_bounds bounds) {
  detail::move_tile<T>(group, to, from, bounds);
  group.sync();
}

/// Copies a whole tile.
template <device_group G, transferable T>
__device__ void copy(const G& group, tile_view<T> to,
                     std::type_identity_t<tile_view<const T>> from) {
  copy(group, to, from, to.bounds());
}

/// Copies the elements of a tile for which `mask(row, column)`, a device function, holds. The
/// others are neither read nor written.
template <device_group G, transferable T, tile_mask Mask>
__device__ void copy(const G& group, tile_view<T> to, std::type_identity_t<tile_view<const T>> from,
                     Mask&& mask) {
  for (std::int64_t i = group.thread_rank(); i < to.rows * to.cols; i += group.size()) {
    const std::int64_t row = i / to.cols;
    const std::int64_t col = i % to.cols;
    if (mask(row, col)) *to.at(row, col) = *from.at(row, col);
  }
  group.sync();
}

}  // namespace untax
