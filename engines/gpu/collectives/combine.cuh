#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/device_group.cuh>
#include <untax/rma/vector_copy.cuh>

#include "engines/gpu/collectives/element.cuh"

namespace untax::gpu {

/// Where the contributions of the ranks to one span of a result lie.
struct addends {
  const std::byte* rows = nullptr;  ///< contribution of rank 0; rank i's is i * row_bytes further
  std::int64_t row_bytes = 0;
  const std::byte* own = nullptr;  ///< contribution of this rank, read from here instead of `rows`
  int ranks = 1;
  int rank = 0;

  [[nodiscard]] __device__ const std::byte* of(int i) const {
    return i == rank ? own : rows + i * row_bytes;
  }
};

/// Where a span of a result goes.
struct combine_target {
  std::byte* own = nullptr;
  std::int64_t between = 0;  ///< bytes to the span at the next rank if all ranks get it, else 0
};

namespace detail {

[[nodiscard]] __device__ inline bool is_wide(const void* p, std::int64_t apart) {
  return (reinterpret_cast<std::uintptr_t>(p) | static_cast<std::uint64_t>(apart)) % 16 == 0;
}

/// Sixteen bytes to load or store. If not `wide`, the address is aligned to single elements only.
template <class Element, bool wide>
struct unit {
  using bits = typename word_of_elements<Element>::bits;
  static constexpr int each = 16 / sizeof(bits);
  union {
    uint4 whole;
    std::uint32_t words[4];
    bits elements[each];
  };

  __device__ void load(const std::byte* from) {
    if constexpr (wide) {
      whole = *reinterpret_cast<const uint4*>(from);
    } else {
#pragma unroll
      for (int i = 0; i < each; ++i) elements[i] = reinterpret_cast<const bits*>(from)[i];
    }
  }
  __device__ void store(std::byte* to) const {
    if constexpr (wide) {
      *reinterpret_cast<uint4*>(to) = whole;
    } else {
#pragma unroll
      for (int i = 0; i < each; ++i) reinterpret_cast<bits*>(to)[i] = elements[i];
    }
  }
};

/// Calls `visit(address)` for every rank that gets the result, with that rank's address of the byte
/// at `offset`. The order is from the next rank on; the own rank is last.
template <class Visit>
__device__ void each_target(const combine_target& to, const addends& from, std::int64_t offset,
                            const Visit& visit) {
  if (to.between != 0) {
#pragma unroll 1
    for (int hop = 1; hop < from.ranks; ++hop) {
      const int away = from.rank + hop < from.ranks ? hop : hop - from.ranks;
      visit(to.own + away * to.between + offset);
    }
  }
  visit(to.own + offset);
}

/// Combines `units` units. Each thread handles `together` units at a time, strided by the group,
/// and issues the loads of `most_ranks` ranks' contributions to these units together.
template <class Element, bool wide, int most_ranks, int together, device_group G>
__device__ void combine_units(const G& group, reduction how, const combine_target& to,
                              const addends& from, std::int64_t units) {
  using unit = detail::unit<Element, wide>;
  constexpr std::int64_t pace = std::int64_t{together} * G::size();
#pragma unroll 1
  for (std::int64_t first = untax::detail::afresh(group.thread_rank()); first < units;
       first += pace) {
    combination<Element, 4> result[together];
#pragma unroll 1
    for (int begin = 0; begin < from.ranks; begin += most_ranks) {
      unit held[most_ranks][together];
#pragma unroll
      for (int k = 0; k < most_ranks; ++k) {
        const int rank = begin + k;
        if (rank >= from.ranks) continue;
        const std::byte* row = from.of(rank);
#pragma unroll
        for (int j = 0; j < together; ++j) {
          const std::int64_t i = first + j * group.size();
          if (i < units) held[k][j].load(row + i * 16);
        }
      }
#pragma unroll
      for (int k = 0; k < most_ranks; ++k) {
        if (begin + k >= from.ranks) continue;
#pragma unroll
        for (int j = 0; j < together; ++j) {
          if (begin + k == 0) {
            result[j].start(held[k][j].words);
          } else {
            result[j].add(how, held[k][j].words);
          }
        }
      }
    }
    unit sum[together];
#pragma unroll
    for (int j = 0; j < together; ++j) result[j].finish(sum[j].words);
    each_target(to, from, 16 * first, [&](std::byte* at) {
#pragma unroll
      for (int j = 0; j < together; ++j) {
        if (first + j * group.size() < units) sum[j].store(at + 16 * j * group.size());
      }
    });
  }
}

/// Combines elements [first, count), which do not fill a unit. Not inlined: it is called rarely,
/// and its registers would add to those of the caller.
template <class Element, device_group G>
__device__ __noinline__ void combine_elements(const G& group, reduction how,
                                              const combine_target& to, const addends& from,
                                              std::int64_t first, std::int64_t count) {
  using bits = typename word_of_elements<Element>::bits;
  for (std::int64_t i = first + group.thread_rank(); i < count; i += group.size()) {
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
    const auto offset = i * static_cast<std::int64_t>(sizeof(bits));
    each_target(to, from, offset,
                [&](std::byte* at) { *reinterpret_cast<bits*>(at) = static_cast<bits>(word); });
  }
}

/// combine_units for unaligned addresses, one unit and one rank at a time.
template <class Element, device_group G>
__device__ __noinline__ void combine_narrow(const G& group, reduction how, const combine_target& to,
                                            const addends& from, std::int64_t units) {
  combine_units<Element, false, 1, 1>(group, how, to, from, units);
}

}  // namespace detail

/// to[0, count) = the addends combined in rank order, in fp32, rounded once. Called by all threads
/// of a group. `to` may be the own contribution. Alignment matters for speed only.
template <class Element, device_group G>
__device__ void combine(const G& group, reduction how, const combine_target& to,
                        const addends& from, std::int64_t count) {
  constexpr int each = 16 / sizeof(typename word_of_elements<Element>::bits);
  const std::int64_t units = count / each;
  const bool wide = detail::is_wide(from.own, 0) && detail::is_wide(to.own, to.between) &&
                    detail::is_wide(from.rows, from.row_bytes);
  if (wide) {
    detail::combine_units<Element, true, 4, 2>(group, how, to, from, units);
  } else {
    detail::combine_narrow<Element>(group, how, to, from, units);
  }
  if (units * each < count)
    detail::combine_elements<Element>(group, how, to, from, units * each, count);
}

}  // namespace untax::gpu
