#pragma once

#include <limits>

#include <untax/core/host_device.hpp>

namespace untax::gpu {

/// In which order a GEMM goes through the rows of A: from the `first` on, and behind the last of
/// `all`, which are those of whole tiles, from row 0.
struct row_turn {
  int first = 0;
  int all = std::numeric_limits<int>::max();

  /// The row of A that lies at `row` in the order of the GEMM.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int turned(int row) const noexcept {
    const int at = row + first;
    return at < all ? at : at - all;
  }
};

inline constexpr int row_sum_threads = 256;  ///< of a block that adds own rows behind a GEMM
inline constexpr int row_words = 8;          ///< elements of a word of 16 bytes, which is added

/// Rows of C that belong to ranks, as many to each but the last ones, and slabs in the memory of an
/// owner, in which each rank leaves what it has of the owner's rows. Parts of tiles are stored
/// whole to all owners of some of their rows. So a slab begins with the part in which the owner's
/// first row lies, and has rows of the rank before it in front of that.
struct owned_rows {
  int m = 0;
  int each = 0;  ///< rows of an owner; 0: all belong to everybody
  int part = 1;  ///< rows of the parts that are stored; parts begin at multiples

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first(int owner) const noexcept {
    const int row = owner * each;
    return row < m ? row : m;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int end(int owner) const noexcept {
    const int row = each == 0 ? m : first(owner) + each;
    return row < m ? row : m;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool owns_some(int owner) const noexcept {
    return first(owner) < end(owner);
  }
  /// The row with which the slabs of an owner begin.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int slab_begin(int owner) const noexcept {
    return first(owner) / part * part;
  }
  /// Of a slab, at most.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int slab_rows() const noexcept {
    return each == 0 ? m : each + part - 1;
  }

  /// Owners of some of the rows of a part.
  struct owners {
    int first = 0;
    int count = 0;
  };
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr owners of_part(int begin) const noexcept {
    const int end = begin + part < m ? begin + part : m;
    if (begin >= end) return {};
    const int from = begin / each;
    return {from, (end - 1) / each - from + 1};
  }
  /// Whether all rows of a part are one owner's, and nobody else's.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool has_part(int owner, int begin) const noexcept {
    return each > 0 && begin < m && begin >= first(owner) &&
           (begin + part < m ? begin + part : m) <= end(owner);
  }
};

}  // namespace untax::gpu
