#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/core/types.hpp>

#include "engines/gpu/channel/peer_slabs.hpp"
#include "engines/gpu/channel/run_arguments.hpp"

namespace untax::gpu {

/// Which rank merges which rows of partial attention, and where the rows of each rank lie in its
/// inbox. Plain arithmetic, the same in kernels and on the host.
///
/// A row is the result of one head of a token: its elements, in chunks of 16 bytes, and its
/// statistic, the logarithm of its sum of exponentials. Either every rank merges all heads, or each
/// owner merges its own heads. The chunks of an owner are numbered by token, then by head. A warp
/// takes 32 consecutive chunks at a time, which may belong to several rows.
///
/// Chunks are sent as words that are their own signal. All warps that have chunks of a row read its
/// statistic, so no warp knows when it may be reset: it is sent as a packet, which carries its
/// epoch.
struct merge_rows : peer_slabs {
  int tokens = 0;
  int heads = 0;
  bool own_heads = false;  ///< each rank merges its share of the heads, not all of them
  int row_chunks = 0;      ///< chunks of elements per row
  int slab_rows = 0;       ///< capacity of a slab: an owner's rows at the maximum number of tokens

  static constexpr int lanes = 32;
  static constexpr int chunk_bytes = 16;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int full_heads() const noexcept {
    return own_heads ? (heads + ranks - 1) / ranks : heads;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_head(int owner) const noexcept {
    const int head = own_heads ? owner * full_heads() : 0;
    return head < heads ? head : heads;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int heads_of(int owner) const noexcept {
    const int left = heads - first_head(owner);
    return left < full_heads() ? left : full_heads();
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rows_of(int owner) const noexcept {
    return tokens * heads_of(owner);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunks_of(int owner) const noexcept {
    return rows_of(owner) * row_chunks;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int turns_of(int owner) const noexcept {
    return (chunks_of(owner) + lanes - 1) / lanes;
  }

  /// A chunk of an owner.
  struct chunk {
    int owner_row = 0;  ///< among the owner's rows
    int token = 0;
    int head = 0;  ///< among all heads
    int at = 0;    ///< chunk within its row
  };
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr chunk chunk_of(int owner, int i) const noexcept {
    const auto number = static_cast<unsigned>(i);
    const auto each = static_cast<unsigned>(row_chunks);
    const auto of_token = static_cast<unsigned>(heads_of(owner));
    const unsigned row = number / each;
    const unsigned token = row / of_token;
    chunk c;
    c.owner_row = static_cast<int>(row);
    c.token = static_cast<int>(token);
    c.head = first_head(owner) + static_cast<int>(row - token * of_token);
    c.at = static_cast<int>(number - row * each);
    return c;
  }
  /// The row of a chunk in the input of a rank, which has all heads of all tokens.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int given_row(const chunk& c) const noexcept {
    return c.token * heads + c.head;
  }

  /// The size of a slab in units of 16 bytes: the chunks of its rows, then their statistics.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t in_slab() const noexcept {
    return std::int64_t{slab_rows} * (row_chunks + 1);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t inbox_bytes() const noexcept {
    return chunk_bytes * sets().sets * ranks * in_slab();
  }
  /// Where a chunk, or a statistic, of `source` lies in the owner's inbox, in units of 16 bytes.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t chunk_place(
      int source, int i, std::uint64_t epoch) const noexcept {
    return slab_of(source, epoch) * in_slab() + i;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t statistic_place(
      int source, int owner_row, std::uint64_t epoch) const noexcept {
    return slab_of(source, epoch) * in_slab() + std::int64_t{slab_rows} * row_chunks + owner_row;
  }
};

/// Kernel arguments. Strides are in chunks; strides of logarithms are in elements.
struct merge_arguments {
  run_arguments run;  ///< `in`: this rank's partial results; `out`: the merged result
  merge_rows how;
  std::int64_t in_stride = 0;
  std::int64_t out_stride = 0;
  const float* in_lse = nullptr;
  float* out_lse = nullptr;
  std::int64_t in_lse_stride = 0;
  std::int64_t out_lse_stride = 0;
  float to_base_2 = 1;            ///< factor from the caller's logarithms to base 2
  float from_base_2 = 1;          ///< its inverse
  std::uint64_t* done = nullptr;  ///< in this GPU's memory: blocks finished in all runs
};

/// A kernel that takes `merge_arguments`. All of its blocks must be resident at the same time.
struct merge_kernel {
  const void* function = nullptr;
  int threads = 0;
};
/// The kernel for an element type and a number of ranks, up to `most_ranks`.
[[nodiscard]] merge_kernel merge_kernel_for(dtype type, int ranks);

}  // namespace untax::gpu
