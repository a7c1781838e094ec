#pragma once

#include <limits>

#include <untax/core/host_device.hpp>

namespace untax::gpu {

/// The order in which a GEMM visits the rows of A: from row `first` to the last of `all`, which are
/// the rows of whole tiles, then from row 0 on.
struct row_rotation {
  int first = 0;
  int all = std::numeric_limits<int>::max();

  /// The row of A at position `row` in the order of the GEMM.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rotated(int row) const noexcept {
    const int at = row + first;
    return at < all ? at : at - all;
  }
};

inline constexpr int row_sum_threads = 256;  ///< per block that adds own rows after a GEMM
inline constexpr int row_words = 8;          ///< elements of a 16-byte word, the unit of addition

/// Which rank owns which rows of C, and the slabs in the memory of an owner: one per rank, for its
/// partial results of the owner's rows. Every owner has `owner_rows` rows, the last ones fewer. The
/// epilogue stores parts of tiles, of `part_rows` rows each, whole, to every rank that owns some of
/// their rows. So a slab begins with the part that contains the owner's first row. In front of that
/// row it may have rows of the previous owner.
struct owned_rows {
  int m = 0;
  int owner_rows = 0;  ///< 0: every rank owns all rows
  int part_rows = 1;   ///< rows of a part; parts begin at multiples of this

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first(int owner) const noexcept {
    const int row = owner * owner_rows;
    return row < m ? row : m;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int end(int owner) const noexcept {
    const int row = owner_rows == 0 ? m : first(owner) + owner_rows;
    return row < m ? row : m;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool owns_some(int owner) const noexcept {
    return first(owner) < end(owner);
  }
  /// The first row of the slabs of an owner.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int slab_begin(int owner) const noexcept {
    return first(owner) / part_rows * part_rows;
  }
  /// The most rows of a slab.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int slab_rows() const noexcept {
    return owner_rows == 0 ? m : owner_rows + part_rows - 1;
  }

  /// The ranks that own some of the rows of a part, if every row has one owner.
  struct owners {
    int first = 0;
    int count = 0;
  };
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr owners of_part(int begin) const noexcept {
    const int end = begin + part_rows < m ? begin + part_rows : m;
    if (begin >= end) return {};
    const int from = begin / owner_rows;
    return {from, (end - 1) / owner_rows - from + 1};
  }
  /// Whether all rows of the part that begins at `begin` belong to `owner`, and to no other rank.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool has_part(int owner, int begin) const noexcept {
    return owner_rows > 0 && begin < m && begin >= first(owner) &&
           (begin + part_rows < m ? begin + part_rows : m) <= end(owner);
  }
};

}  // namespace untax::gpu
