#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <untax/rma/check.hpp>
#include <untax/rma/group.hpp>
#include <untax/rma/tile_view.hpp>

// Verbs that move elements. All threads of a group call a verb, which distributes the elements to
// them. When it returns, the group is done, and on the host the bytes are in place. Other ranks may
// read them only after a signal. If other threads of the group have written to the source, a
// group.sync() has to come before.
//
// Addresses are of any rank: symmetric<T>::at(peer) or local(). Null, misaligned and overlapping
// regions and negative sizes are refused with errc::invalid_argument, before anything is read or
// written. If heaps have guards, so is a region that begins in one and is not within one
// allocation. Zero elements need no address.

namespace untax {

/// A predicate that says for each (row, column) of a tile whether the element is copied.
template <class M>
concept tile_mask = std::predicate<M&, std::int64_t, std::int64_t>;

namespace detail {

template <class T>
[[nodiscard]] constexpr std::size_t bytes_of(std::int64_t count) noexcept {
  return static_cast<std::size_t>(count) * sizeof(T);
}

template <transferable T, host_group G>
void move_elements(std::string_view verb, const G& group, T* to, const T* from,
                   std::int64_t count) {
  check_count<T>(verb, "elements", count);
  if (count > 0) {
    check_address(verb, "destination", to, alignof(T));
    check_address(verb, "source", from, alignof(T));
    check_apart(verb, to, from, bytes_of<T>(count));
    check_inside(verb, "destination", to, bytes_of<T>(count));
    check_inside(verb, "source", from, bytes_of<T>(count));
    const share mine = share_of(group, count);
    if (mine.begin < mine.end)
      std::memcpy(to + mine.begin, from + mine.begin, bytes_of<T>(mine.end - mine.begin));
  }
  group.sync();
}

}  // namespace detail

/// Copies `count` elements between any two addresses.
template <host_group G, transferable T>
void copy(const G& group, T* to, const std::type_identity_t<T>* from, std::int64_t count) {
  detail::move_elements<T>("copy", group, to, from, count);
}

/// Copies `count` elements of this rank to a peer.
template <host_group G, transferable T>
void put(const G& group, T* to, const std::type_identity_t<T>* from, std::int64_t count) {
  detail::move_elements<T>("put", group, to, from, count);
}

/// Copies `count` elements of a peer to this rank.
template <host_group G, transferable T>
void get(const G& group, T* to, const std::type_identity_t<T>* from, std::int64_t count) {
  detail::move_elements<T>("get", group, to, from, count);
}

/// Copies the elements of a tile that are inside `bounds`. Both tiles have the same shape, and each
/// its own stride. Dense tiles and long rows move as fast as memory allows.
template <host_group G, transferable T>
void copy(const G& group, tile_view<T> to, std::type_identity_t<tile_view<const T>> from,
          tile_bounds bounds) {
  const detail::tile_pair<T> tile("copy", to, from, bounds);
  if (!tile.empty()) {
    detail::check_inside("copy", "destination tile", tile.to.data, detail::bytes_across(tile.to));
    detail::check_inside("copy", "source tile", tile.from.data, detail::bytes_across(tile.from));
    const detail::share mine = detail::share_of(group, tile.to.rows);
    if (tile.to.dense() && tile.from.dense() && mine.begin < mine.end) {
      std::memcpy(tile.to.at(mine.begin, 0), tile.from.at(mine.begin, 0),
                  detail::bytes_of<T>((mine.end - mine.begin) * tile.to.cols));
    } else {
      for (std::int64_t row = mine.begin; row < mine.end; ++row) {
        std::memcpy(tile.to.at(row, 0), tile.from.at(row, 0), detail::bytes_of<T>(tile.to.cols));
      }
    }
  }
  group.sync();
}

/// Copies a whole tile.
template <host_group G, transferable T>
void copy(const G& group, tile_view<T> to, std::type_identity_t<tile_view<const T>> from) {
  copy(group, to, from, to.bounds());
}

/// Copies the elements of a tile for which `mask(row, column)` holds. The others are neither read
/// nor written. If heaps have guards, an element outside of an allocation is refused when its turn
/// comes, after those before it were copied.
template <host_group G, transferable T, tile_mask Mask>
void copy(const G& group, tile_view<T> to, std::type_identity_t<tile_view<const T>> from,
          Mask&& mask) {
  const detail::tile_pair<T> tile("copy", to, from, to.bounds());
  const detail::share mine = tile.empty() ? detail::share{} : detail::share_of(group, tile.to.rows);
  for (std::int64_t row = mine.begin; row < mine.end; ++row) {
    for (std::int64_t col = 0; col < tile.to.cols; ++col) {
      if (!mask(row, col)) continue;
      detail::check_inside("copy", "element of the destination", tile.to.at(row, col), sizeof(T));
      detail::check_inside("copy", "element of the source", tile.from.at(row, col), sizeof(T));
      *tile.to.at(row, col) = *tile.from.at(row, col);
    }
  }
  group.sync();
}

}  // namespace untax
