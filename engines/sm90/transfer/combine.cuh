#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/device_group.cuh>

#include "engines/sm90/transfer/element.cuh"

namespace untax::sm90 {

/// Where the contributions of the ranks to one stretch of a result lie.
struct addends {
  const std::byte* rows = nullptr;  ///< that of rank 0; those of the others follow
  std::int64_t row_bytes = 0;
  const std::byte* own = nullptr;  ///< that of this rank, which is not among the rows
  int ranks = 1;
  int rank = 0;

  [[nodiscard]] __device__ const std::byte* of(int i) const {
    return i == rank ? own : rows + i * row_bytes;
  }
};

namespace detail {

[[nodiscard]] __device__ inline bool is_wide(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}

/// Sixteen bytes from or to an address of which only the elements are aligned.
template <class Element>
struct unit {
  using bits = typename word_of_elements<Element>::bits;
  static constexpr int each = 16 / sizeof(bits);
  union {
    uint4 whole;
    std::uint32_t words[4];
    bits elements[each];
  };

  __device__ void load(const std::byte* from, bool wide) {
    if (wide) {
      whole = *reinterpret_cast<const uint4*>(from);
      return;
    }
#pragma unroll
    for (int i = 0; i < each; ++i) elements[i] = reinterpret_cast<const bits*>(from)[i];
  }
  __device__ void store(std::byte* to, bool wide) const {
    if (wide) {
      *reinterpret_cast<uint4*>(to) = whole;
      return;
    }
#pragma unroll
    for (int i = 0; i < each; ++i) reinterpret_cast<bits*>(to)[i] = elements[i];
  }
};

}  // namespace detail

/// to[0, count) = the addends combined in rank order, in fp32, rounded once. By all threads of a
/// block. `to` may be the own contribution. Alignment matters for speed only.
template <class Element>
__device__ __noinline__ void combine(reduction how, std::byte* to, const addends& from,
                                     std::int64_t count) {
  using unit = detail::unit<Element>;
  constexpr int at_once = 8;  // loads of a thread that are on their way together
  const device_block block;
  const bool wide_own = detail::is_wide(from.own) && detail::is_wide(to);
  const bool wide_rows = detail::is_wide(from.rows) && from.row_bytes % 16 == 0;
  const std::int64_t units = count / unit::each;
  for (std::int64_t i = block.thread_rank(); i < units; i += block.size()) {
    combination<Element, 4> result;
    for (int first = 0; first < from.ranks; first += at_once) {
      unit held[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int rank = first + k;
        if (rank < from.ranks)
          held[k].load(from.of(rank) + i * 16, rank == from.rank ? wide_own : wide_rows);
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (first + k >= from.ranks) continue;
        if (first + k == 0) {
          result.start(held[k].words);
        } else {
          result.add(how, held[k].words);
        }
      }
    }
    unit sum;
    result.finish(sum.words);
    sum.store(to + i * 16, wide_own);
  }
  using bits = typename unit::bits;
  for (std::int64_t i = units * unit::each + block.thread_rank(); i < count; i += block.size()) {
    combination<Element, 1> result;
    for (int rank = 0; rank < from.ranks; ++rank) {
      const std::uint32_t word = reinterpret_cast<const bits*>(from.of(rank))[i];
      if (rank == 0) {
        result.start(&word);
      } else {
        result.add(how, &word);
      }
    }
    std::uint32_t word = 0;
    result.finish(&word);
    reinterpret_cast<bits*>(to)[i] = static_cast<bits>(word);
  }
}

}  // namespace untax::sm90
