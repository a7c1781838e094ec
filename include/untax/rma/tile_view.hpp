#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <untax/core/host_device.hpp>
#include <untax/rma/check.hpp>

namespace untax {

/// The number of rows and columns of a tile that hold data. Elements at or beyond them are neither
/// read nor written.
struct tile_bounds {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

namespace detail {

/// The number in [0, most] that is nearest to `value`. As std::clamp, but also in kernels.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t clamped(std::int64_t value,
                                                               std::int64_t most) noexcept {
  if (value < 0) return 0;
  return value < most ? value : most;
}

}  // namespace detail

/// A view of a rectangle of elements that it does not own, at this rank or at a peer, in row-major
/// order. `stride` is the number of elements from the start of a row to the start of the next one.
template <class T>
struct tile_view {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  constexpr tile_view() = default;
  /// `row_stride` 0 means densely packed.
  UNTAX_HOST_DEVICE constexpr tile_view(T* elements, std::int64_t row_count, std::int64_t col_count,
                                        std::int64_t row_stride = 0) noexcept
      : data(elements),
        rows(row_count),
        cols(col_count),
        stride(row_stride == 0 ? col_count : row_stride) {}
  /// The same tile through a view that only reads.
  template <class U>  // NOLINTNEXTLINE(google-explicit-constructor): it reads the same tile
  requires std::is_same_v<T, const U> UNTAX_HOST_DEVICE constexpr tile_view(
      const tile_view<U>& other) noexcept
      : tile_view(other.data, other.rows, other.cols, other.stride) {}

  /// The address of an element. It is not checked.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr T* at(std::int64_t row,
                                                  std::int64_t col) const noexcept {
    return data + row * stride + col;
  }
  /// The tile of at most `max_rows` x `max_cols` elements whose first element is (row, col), cut
  /// off at the edges of this tile.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_view part(std::int64_t row, std::int64_t col,
                                                           std::int64_t max_rows,
                                                           std::int64_t max_cols) const noexcept {
    const std::int64_t first_row = detail::clamped(row, rows);
    const std::int64_t first_col = detail::clamped(col, cols);
    const std::int64_t part_rows = detail::clamped(max_rows, rows - first_row);
    const std::int64_t part_cols = detail::clamped(max_cols, cols - first_col);
    const bool nothing = part_rows == 0 || part_cols == 0;
    return {nothing ? data : at(first_row, first_col), part_rows, part_cols, stride};
  }
  /// Whether the rows follow each other without gaps.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool dense() const noexcept {
    return stride == cols || rows <= 1;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_bounds bounds() const noexcept {
    return {rows, cols};
  }
};

namespace detail {

template <class T>
void check_tile(std::string_view verb, std::string_view name, const tile_view<T>& tile) {
  check_count<T>(verb, "rows", tile.rows);
  check_count<T>(verb, "columns", tile.cols);
  if (tile.rows == 0 || tile.cols == 0) return;
  check_address(verb, name, tile.data, alignof(T));
  if (tile.rows > 1 && tile.stride < tile.cols) [[unlikely]] {
    refuse(verb, "the " + std::string(name) + " has " + std::to_string(tile.cols) +
                     " columns but a row stride of " + std::to_string(tile.stride) +
                     "; the stride must be at least the number of columns");
  }
}

/// Bytes from the first element of a tile that is not empty to the end of its last one.
template <class T>
[[nodiscard]] constexpr std::size_t bytes_across(const tile_view<T>& tile) noexcept {
  return static_cast<std::size_t>((tile.rows - 1) * tile.stride + tile.cols) * sizeof(T);
}

/// Whether an element of one tile shares a byte with an element of the other, which has the same
/// shape. Tiles of one matrix may interleave.
template <class T>
[[nodiscard]] bool overlapping(const tile_view<T>& to, const tile_view<const T>& from) noexcept {
  const auto bytes = [](std::int64_t elements) {
    return elements * static_cast<std::int64_t>(sizeof(T));
  };
  const std::int64_t width = bytes(to.cols);
  const std::int64_t step = bytes(from.stride);
  // The distance from the start of the destination to that of the source.
  const auto apart = static_cast<std::int64_t>(address_of(from.data) - address_of(to.data));
  if (apart >= bytes((to.rows - 1) * to.stride) + width ||
      apart + bytes((from.rows - 1) * from.stride) + width <= 0) {
    return false;
  }
  for (std::int64_t row = 0; row < to.rows; ++row) {
    const std::int64_t begin = bytes(row * to.stride) - apart;  // of this row, seen from the source
    // The first source row that ends behind `begin` is the only one that can touch a row as wide as
    // itself, or the next one can.
    const std::int64_t first = begin < width || from.rows == 1 ? 0 : (begin - width) / step + 1;
    if (first < from.rows && first * step < begin + width && first * step + width > begin)
      return true;
  }
  return false;
}

/// The two tiles of a verb: checked, and reduced to the bounds.
template <class T>
struct tile_pair {
  tile_view<T> to;
  tile_view<const T> from;

  tile_pair(std::string_view verb, tile_view<T> destination, tile_view<const T> source,
            tile_bounds bounds)
      : to(destination), from(source) {
    check_tile(verb, "destination", to);
    check_tile(verb, "source", from);
    if (to.rows != from.rows || to.cols != from.cols) [[unlikely]] {
      refuse(verb, "the destination is " + std::to_string(to.rows) + " x " +
                       std::to_string(to.cols) + " but the source is " + std::to_string(from.rows) +
                       " x " + std::to_string(from.cols) + "; both tiles must have the same shape");
    }
    to.rows = from.rows = clamped(bounds.rows, to.rows);
    to.cols = from.cols = clamped(bounds.cols, to.cols);
    if (!empty() && overlapping(to, from)) [[unlikely]] {
      refuse(verb, "the destination tile at " + text_of(address_of(to.data), sizeof(T)) +
                       " overlaps the source tile at " + text_of(address_of(from.data), sizeof(T)) +
                       "; they must not share an element");
    }
  }
  [[nodiscard]] bool empty() const noexcept { return to.rows == 0 || to.cols == 0; }
};

}  // namespace detail
}  // namespace untax
