#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>

namespace untax {

/// Shards of k and of n are multiples of this number of elements. So each shard, and each part of a
/// row, begins at a multiple of 16 bytes if elements have 2.
inline constexpr std::int64_t shard_granularity = 8;

/// The dimension of A that is sharded over the ranks.
enum class gather_axis : std::uint8_t { rows, k };

/// The name of `g` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(gather_axis g) noexcept {
  return g == gather_axis::rows ? "rows" : "k";
}

/// C_r [m, n] = gather(A) [m, k] x B_r [n, k]^T. Every rank has its own B_r of n rows. A is sharded
/// over W ranks in shards of ceil(m / W) rows, or ceil(k / W) columns rounded up to a multiple of
/// 8; the last ones are shorter or empty.
struct all_gather_gemm_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;  ///< columns of the result of one rank
  std::int64_t k = 0;
  dtype type = dtype::bf16;
  gather_axis gather = gather_axis::rows;
};

/// C [m, n] = A [m, k] x B [n, k]^T, complete at every rank. A is the same at all ranks. B is
/// sharded: shards have ceil(n / W) rows rounded up to a multiple of 8, and rank r computes the
/// columns of C that belong to its shard.
struct gemm_all_scatter_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;  ///< columns of the whole result
  std::int64_t k = 0;
  dtype type = dtype::bf16;
};

/// The element type in which partial results of a problem are sent: the one that the problem asks
/// for, else that of the problem. fp32 sends twice the bytes of a 16-bit type and rounds nothing on
/// the way.
template <class Problem>
[[nodiscard]] constexpr dtype partials_type(const Problem& problem) noexcept {
  return problem.partials.value_or(problem.type);
}

/// The plan of a protocol, besides the problem: its rank, and the division of the work. All values
/// are positive, unless 0 is explained.
struct protocol_plan {
  int world = 1;
  int rank = 0;
  pattern how = pattern::fused_specialized;
  direction move = direction::push;
  int workers = 1;            ///< computing workers
  int senders = 1;            ///< senders, if the pattern has them
  int phases = 1;             ///< of an all-reduce: 1 is straight to every rank, 2 by way of owners
  std::int64_t tile_m = 256;  ///< rows of a tile
  std::int64_t tile_n = 256;  ///< columns of a tile
  std::int64_t panel_k = 1024;  ///< columns of a chunk if A is gathered by k
  /// The extent of a chunk along the dimension of A that is not sharded: columns if rows are
  /// sharded, and rows, a multiple of tile_m, if k is. 0: all of it.
  std::int64_t chunk_cross = 0;
  bool gather_own = false;  ///< a rank also sends to itself, so that all of A is in one place
  bool fan_out = false;     ///< a chunk of A goes to all peers before the next chunk does
  /// Senders of A also acquire what the peers send, in a kernel before the one that computes.
  bool senders_acquire = false;
  /// Senders cannot wait: at its end a run reserves the rooms of the next one. This needs one set
  /// of rooms.
  bool reserves_next = false;
  /// The number of chunks of A, or tiles of C, one below the other, whose first columns are sent
  /// before their next columns. Then the chunks below them follow. If tiles are in raster groups of
  /// one, they are sent in the order of their numbers.
  int raster_rows = 1;
  /// The number of columns of A, equally far apart, at which tiles begin at the same time. The
  /// chunks of these columns take turns, if the number divides the chunks of a row.
  int k_interleave = 1;
  int sets = 2;  ///< sets of rooms for A, used in turn
  /// The most rows of any run, if the problem's rows are those of one run and other runs between
  /// the same ranks have other numbers. All runs then have the same places of rooms and the same
  /// counters. 0: all runs have the rows of the problem.
  std::int64_t capacity = 0;
};

}  // namespace untax
