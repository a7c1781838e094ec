#pragma once

#include <cstdint>
#include <string_view>

#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>

namespace untax {

/// Shards of k, and of n, are multiples of so many elements: then each of them, and each part of a
/// row, begins at a multiple of 16 bytes if elements have 2.
inline constexpr std::int64_t shard_granularity = 8;

/// Which dimension of A is sharded over the ranks.
enum class gather_axis : std::uint8_t { rows, k };

[[nodiscard]] constexpr std::string_view name_of(gather_axis g) noexcept {
  return g == gather_axis::rows ? "rows" : "k";
}

/// C_r [m, n] = gather(A) [m, k] x B_r [n, k]^T. Every rank has its own B_r of n rows.
/// A is sharded over W ranks in shards of ceil(m / W) rows, or ceil(k / W) columns rounded up to a
/// multiple of 8; the last ones are shorter.
struct all_gather_gemm_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;  ///< columns of the result of one rank
  std::int64_t k = 0;
  dtype type = dtype::bf16;
  gather_axis gather = gather_axis::rows;
};

/// C [m, n] = A [m, k] x B [n, k]^T, complete at every rank. A is the same everywhere; B is
/// sharded: shards have ceil(n / W) rows rounded up to a multiple of 8, and rank r computes the
/// columns of C that belong to its shard.
struct gemm_all_scatter_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;  ///< columns of the whole result
  std::int64_t k = 0;
  dtype type = dtype::bf16;
};

/// C [m, n] = sum over ranks of A_r [m, k_r] x B_r [n, k_r]^T, where k is sharded: shards have
/// ceil(k / W) rounded up to a multiple of 8, and rank r ends with its ceil(m / W) rows of the sum.
/// The sum is taken in fp32 in rank order: bitwise reproducible.
struct gemm_reduce_scatter_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;  ///< the whole reduction dimension, all ranks together
  dtype type = dtype::bf16;
  dtype partials = dtype::f32;  ///< element type of partial results on the wire: fp32, or `type`
};

/// C [m, n] = sum over ranks of A_r [m, k_r] x B_r [n, k_r]^T, complete at every rank, where k is
/// sharded: shards have ceil(k / W) rounded up to a multiple of 8. The sum is taken in fp32 in rank
/// order: the same bits at every rank, and bitwise reproducible.
struct gemm_all_reduce_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;  ///< the whole reduction dimension, all ranks together
  dtype type = dtype::bf16;
  dtype partials = dtype::f32;  ///< element type of partial results on the wire: fp32, or `type`
};

/// What a protocol needs beside the problem: its rank, and how the work is cut. All values
/// are positive.
struct protocol_plan {
  int world = 1;
  int rank = 0;
  pattern how = pattern::fused_specialized;
  direction move = direction::push;
  int workers = 1;              ///< computing workers
  int senders = 1;              ///< moving workers, where the pattern has them
  int phases = 1;               ///< of an all-reduce: straight to everybody, or by way of owners
  std::int64_t tile_m = 256;    ///< rows of a tile
  std::int64_t tile_n = 256;    ///< columns of a tile
  std::int64_t panel_k = 1024;  ///< columns of a chunk where A is gathered by k
  /// How far a chunk reaches along the dimension of A that is not sharded: columns where rows are,
  /// and rows, a multiple of tile_m, where k is. 0: all of it.
  std::int64_t chunk_cross = 0;
  bool gather_own = false;  ///< a rank sends to itself too, so that all of A lies in one place
  bool fan_out = false;     ///< a chunk of A goes to all peers before the next chunk does
  /// Senders of A also acquire what the peers send, in a kernel before the one that computes.
  bool senders_acquire = false;
  /// Senders cannot wait: at its end a run reserves what the next one sends, with one set of
  /// rooms.
  bool reserves_next = false;
  /// Chunks of A, or tiles of C, one below the other, whose first columns go out before the next
  /// columns do; then come those below them. Tiles in raster groups of one go out as they are
  /// numbered.
  int raster_rows = 1;
  /// Tiles begin at so many columns of A at the same time, equally far apart: chunks of these take
  /// turns, where it divides the chunks of a row.
  int k_interleave = 1;
  int sets = 2;  ///< of rooms for A, used in turn
  /// Where the problem's rows are those of one run, and other runs between the same ranks have
  /// others: the most that any has. Rooms of all of them have the same place and the same counters.
  /// 0: all runs have those of the problem.
  std::int64_t capacity = 0;
};

}  // namespace untax
