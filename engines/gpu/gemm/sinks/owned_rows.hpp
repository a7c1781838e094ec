#pragma once

#include <limits>

#include <untax/core/host_device.hpp>

namespace untax::gpu {

/// The order in which a GEMM goes through the rows of A: from row `first` on to the last of `all`,
/// which are those of whole tiles, then from row 0 on.
struct row_rotation {
  int first = 0;
  int all = std::numeric_limits<int>::max();

  /// The row of A that lies at `row` in the order of the GEMM.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rotated(int row) const noexcept {
    const int at = row + first;
    return at < all ? at : at - all;
  }
};

inline constexpr int row_sum_threads = 256;  ///< of a block that adds own rows behind a GEMM
inline constexpr int row_words = 8;          ///< elements of a word of 16 bytes, which is added

/// Which rank owns which rows of C, and the slabs in the memory of an owner: one of each rank, for
/// its partial results of the owner's rows. Every owner has `owner_rows` of them, the last ones
/// fewer. The epilogue stores parts of tiles, of `part_rows` each, whole, to every rank that owns
/// some of their rows. So a slab begins with the part in which the owner's first row lies, and may
/// have rows of the owner before in front of that.
struct owned_rows {
  int m = 0;
  int owner_rows = 0;  ///< 0: every rank owns all rows
  int part_rows = 1;   ///< of a part; parts begin at multiples

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
  /// The row with which the slabs of an owner begin.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int slab_begin(int owner) const noexcept {
    return first(owner) / part_rows * part_rows;
  }
  /// Of a slab, at most.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int slab_rows() const noexcept {
    return owner_rows == 0 ? m : owner_rows + part_rows - 1;
  }

  /// The ranks that own some of the rows of a part, where every row has one owner.
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
  /// Whether all rows of a part are one owner's, and nobody else's.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool has_part(int owner, int begin) const noexcept {
    return owner_rows > 0 && begin < m && begin >= first(owner) &&
           (begin + part_rows < m ? begin + part_rows : m) <= end(owner);
  }
};

}  // namespace untax::gpu
