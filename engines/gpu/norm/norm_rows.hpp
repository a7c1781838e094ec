#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/core/norm_output.hpp>
#include <untax/core/types.hpp>

#include "engines/gpu/channel/peer_slabs.hpp"
#include "engines/gpu/channel/run_arguments.hpp"

namespace untax::gpu {

inline constexpr int norm_threads = 512;
inline constexpr int most_normed = 16384;  ///< maximum length of a row, in elements

/// Which rank sums and normalises which rows, and where the rows of each rank lie in its inbox.
/// Plain arithmetic, the same in kernels and on the host.
///
/// Either every rank sums and normalises all rows, or each owner its own rows, whose results it
/// stores at all ranks. Rows are sent as words of two elements.
struct norm_rows : peer_slabs {
  int tokens = 0;
  int hidden = 0;     ///< a multiple of 8
  int slab_rows = 0;  ///< capacity of a slab: an owner's rows at the maximum number of tokens
  int spread = 1;     ///< blocks of a cluster that share each row, a power of two

  static constexpr int elements = 8;  ///< per load of a thread: 16 bytes

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
  /// Parts of a row, with eight elements per thread of a block: 1, 2 or 4. The last may be empty.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int parts() const noexcept {
    int all = 1;
    while (all * norm_threads < chunks()) all *= 2;
    return all;
  }
  /// Whether a rank reserves slabs before it sends. Where every rank adds all rows it need not: it
  /// receives from all peers in each epoch, and by then they have reset the words of the epoch
  /// before. Where owners pass results on, they synchronise anyway, and a rank whose wait failed
  /// does not corrupt another rank's results.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool reserves() const noexcept { return passes_on; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t in_slab() const noexcept {
    return std::int64_t{slab_rows} * hidden;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t inbox_bytes() const noexcept {
    return 2 * sets().sets * ranks * in_slab();
  }
  /// Where a row of `source` lies in its owner's inbox, as an offset in elements.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t place_of(
      int source, int owner, int row, std::uint64_t epoch) const noexcept {
    return slab_of(source, epoch) * in_slab() + std::int64_t{row - first_row(owner)} * hidden;
  }
};

/// Parts of the longest row.
inline constexpr int most_row_parts = most_normed / norm_rows::elements / norm_threads;

/// Kernel arguments.
struct norm_arguments {
  run_arguments run;  ///< `in`: own part of the sum; `between`: from a rank's results to the next's
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
  std::uint64_t* done = nullptr;  ///< in this GPU's memory: blocks finished in all runs
};

/// The kernel for a 16-bit element type. It takes `norm_arguments`, with `norm_threads` threads per
/// block and clusters of `spread` blocks, which must all be resident at the same time.
[[nodiscard]] const void* norm_kernel(dtype type, const norm_rows& how);

}  // namespace untax::gpu
