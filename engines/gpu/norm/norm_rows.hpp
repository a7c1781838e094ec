#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/core/norm_output.hpp>
#include <untax/core/types.hpp>

#include "engines/gpu/channel/peer_slabs.hpp"
#include "engines/gpu/channel/run_arguments.hpp"

namespace untax::gpu {

inline constexpr int norm_threads = 512;
inline constexpr int most_normed = 16384;  ///< elements of a row

/// Which rank sums and normalises which rows, and where those of each rank wait in its inbox. Plain
/// arithmetic, the same in kernels and on the host.
///
/// Every rank does it for all rows; or an owner for its own, and stores both results at all ranks.
/// Rows are sent as words of two elements.
struct norm_rows : peer_slabs {
  int tokens = 0;
  int hidden = 0;     ///< a multiple of 8
  int slab_rows = 0;  ///< that a slab has room for: those of an owner when there are most tokens
  int spread = 1;     ///< blocks of a cluster that share each row, a power of two

  static constexpr int elements = 8;  ///< that a thread takes at a time: 16 bytes

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int full_rows() const noexcept {
    return passes_on ? (tokens + ranks - 1) / ranks : tokens;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_row(int owner) const noexcept {
    const int row = passes_on ? owner * full_rows() : 0;
    return row < tokens ? row : tokens;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int end_row(int owner) const noexcept {
    const int end = first_row(owner) + full_rows();
    return end < tokens ? end : tokens;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunks() const noexcept {
    return hidden / elements;
  }
  /// A row in parts of eight elements a thread of a block: 1, 2 or 4, the last ones maybe empty.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int parts() const noexcept {
    int all = 1;
    while (all * norm_threads < chunks()) all *= 2;
    return all;
  }
  /// Whether a rank reserves slabs before it sends. Where every rank adds all rows it need not: it
  /// receives from all peers in each epoch, and these have reset the words of the epoch before by
  /// then. Where owners pass results on they synchronise anyway, and a rank whose wait failed
  /// spoils no other rank's results.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool reserves() const noexcept { return passes_on; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t in_slab() const noexcept {
    return std::int64_t{slab_rows} * hidden;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t inbox_bytes() const noexcept {
    return 2 * sets().sets * ranks * in_slab();
  }
  /// Where a row of `source` lies at its owner: elements from the beginning of the inbox.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t place_of(
      int source, int owner, int row, std::uint64_t epoch) const noexcept {
    return slab_of(source, epoch) * in_slab() + std::int64_t{row - first_row(owner)} * hidden;
  }
};

/// Parts of the longest row.
inline constexpr int most_row_parts = most_normed / norm_rows::elements / norm_threads;

/// What the kernel is given.
struct norm_arguments {
  run_arguments run;  ///< `in`: this rank's part of the sum; `between`: results of two ranks
  norm_rows how;
  dtype type = dtype::bf16;
  norm_output output = norm_output::same;
  const void* residual = nullptr;
  const void* weight = nullptr;
  void* x = nullptr;
  void* out = nullptr;
  float* scales = nullptr;
  float scale = 1;
  float epsilon = 0;
  std::uint64_t* done = nullptr;  ///< in this GPU's memory: blocks that have done all, ever
};

/// The kernel for elements of 16 bits of a type, which takes `norm_arguments`, `norm_threads`
/// threads a block, clusters of `spread` blocks, and places for all its blocks at once.
[[nodiscard]] const void* norm_kernel(dtype type, const norm_rows& how);

}  // namespace untax::gpu
