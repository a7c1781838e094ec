#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda.h>

#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/peer_meeting.cuh"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/trace/gemm_notes.cuh"

namespace untax::gpu {

/// The part of C for which a role is about to load operands, or that it has written: first row and
/// column. Rows are numbered in raster order, which for a gather differs from their order in A.
struct tile_place {
  int row = 0;
  int column = 0;
};

/// K-blocks of both operands that lie in one place each, and arrive together.
struct operand_window {
  const CUtensorMap* a = nullptr;
  int a_row = 0;  ///< row in the matrix that `a` describes
  const CUtensorMap* b = nullptr;
  int first = 0;  ///< the k-block at column 0 of both matrices
  int end = 0;    ///< the k-block after the last one
};

/// The destination of a part of C.
struct destination {
  const CUtensorMap* c = nullptr;
  int row = 0;  ///< row in the matrix that `c` describes
};

/// Some of the copies of C, in the order of hops. Hop 0 is this rank's copy. After the last hop the
/// order continues with hop 0.
struct copy_hops {
  int first = 0;
  int count = 1;

  [[nodiscard]] __device__ int at(int i, int world) const {
    const int hop = first + i;
    return hop < world ? hop : hop - world;
  }
  /// The number of these copies that belong to peers.
  [[nodiscard]] __device__ int peers(int world) const {
    return count - (count > 0 && (first == 0 || first + count > world) ? 1 : 0);
  }
};

/// The epilogue buffers of an epilogue warp, through which it may copy other data until its first
/// sub-tile.
struct epilogue_smem {
  std::byte* bytes = nullptr;      ///< at a multiple of 1024; null for a warp that stores nothing
  stage_barrier* moved = nullptr;  ///< an mbarrier of one arrival, in its first phase
};

/// A source tells where k-blocks of both operands lie.
template <class V>
concept source_view = requires(V& v, int row, int k_block) {
  /// The window of a k-block, for rows of A from a tile's first row on. Before `begin`, only its
  /// fields about B are valid.
  { v.window_of(row, k_block) } -> std::same_as<operand_window>;
};
/// A source of operands that are ready from the start.
template <class V>
concept present_source = source_view<V> && requires(V& v, int row) {
  /// The row of A at position `row` in the order of the GEMM.
  { v.rotated(row) } -> std::same_as<int>;
};
/// A source whose k-blocks arrive while the kernel runs.
template <class V>
concept awaited_source = source_view<V> && requires(V& v, int row, int rows, int begin, int end) {
  /// Called by a warp: the first of the k-blocks [begin, end), all of one window, for which these
  /// rows have not arrived, or `end`. Acquires those before it.
  { v.arrived_until(row, rows, begin, end) } -> std::same_as<int>;
  /// Waits for all these k-blocks.
  v.await(row, rows, begin, end);
  /// Whether the fourth warp calls these two functions, ahead of the producer. Then the producer
  /// calls `is_own_window`: whether a window is this rank's own, so that nothing has to arrive.
  { v.polls() } -> std::same_as<bool>;
  { v.is_own_window(row, begin) } -> std::same_as<bool>;
};
/// A source that signals when it has been read.
template <class V>
concept retired_source = source_view<V> && requires(V& v) {
  /// Whether it signals in this launch.
  { v.counts_readers() } -> std::same_as<bool>;
  /// Called by the producer warp when the CTA has read all that it needs.
  v.retire();
};
/// A source that loads A into the ring itself, instead of the producer: all threads of an MMA
/// warpgroup call its `rows`.
template <class V>
concept bringing_source = source_view<V> && requires(V& v, int group) {
  /// `rows::stages`: how many stages are loaded together. `request(k_block, count)` issues the
  /// loads of the rows of `count` of the group's k-blocks. Its result goes to `settle(requested,
  /// count, place)`, which waits for the loads and writes k-block i to `place(i)`, in the layout
  /// that the tensor cores read. Rows beyond those of A may keep their old contents.
  { v.rows_for(group) } -> std::same_as<typename V::rows>;
};

/// A sink tells where parts of C are stored.
template <class V>
concept sink_view = requires(V& v, int row, int hop) {
  /// Where the part of a tile that begins at a row goes, in the copy of C that is `hop` hops away.
  { v.copy_of(row, hop) } -> std::same_as<destination>;
};
/// A sink that signals to peers what has been stored.
template <class V>
concept signalling_sink = sink_view<V> && requires(V& v, const tile_place& tile, bool stored) {
  /// Called by an epilogue warp before its first store.
  v.before_store();
  /// The copies of C, among those of `world()` ranks, for the part of a tile that begins at a row.
  { v.copies_of(tile.row) } -> std::same_as<copy_hops>;
  { v.world() } -> std::same_as<int>;
  /// Whether the stores of a tile complete before its epilogue buffers are used again.
  { v.in_turn() } -> std::same_as<bool>;
  /// Called by a thread of an epilogue warp when it has issued all stores of its part of a tile.
  v.after_tile(tile);
  /// Called by all threads at the end: whether this thread stored all of its part. Then the first
  /// warp calls `finish` with whether all threads did.
  { v.has_stored() } -> std::same_as<bool>;
  v.finish(stored);
};

/// A signalling sink that adds the partial results of all ranks for the rows that this rank owns.
template <class V>
concept adding_sink = signalling_sink<V> && requires(V& v, peer_meeting& meeting) {
  /// Called by a thread of an epilogue warp. `last_sent(block, group)` is the last work on a tile
  /// with parts for peers. The thread says of each tile whether its results are sums, and then that
  /// everything has been sent, and that everything has been stored, which waits for the stores.
  v.take_sums(true);
  v.has_sent(meeting);
  v.end_stores(meeting, true);
  /// Called by the fourth warp: signals when all blocks have sent, and waits for the peers' parts.
  v.meet(meeting);
  /// For threads of an MMA warpgroup: `next_work()`; `begin(block, work, group)` of a tile that
  /// they hand to the epilogue; `add<T, config>(subtile, rows)` after they have written a sub-tile;
  /// and at the end `finish<T>(block, group)`.
  { v.partials() } -> std::same_as<typename V::peers_partials>;
};

/// A sink that takes the sums of tiles directly from the MMA warpgroups, instead of the epilogue.
template <class V>
concept summing_sink = requires(V& v, int group) {
  /// For each warp of a group: `begin()`, then `take<T, config>(block, place, sums)` for each of
  /// its tiles, then `left(block)`, whose result goes to `after_results(block, group, left)`.
  { v.results_of(group) } -> std::same_as<typename V::results>;
};

/// A sink for which MMA warpgroups may multiply function(gate) by up.
template <class V>
concept gating_sink = requires(V& v) {
  { v.gated() } -> std::same_as<const gated_output&>;
};

/// Senders that are part of the kernel.
template <class V>
concept senders_view = requires(V& v, int warp, std::byte* shared, const epilogue_smem& own) {
  /// Called before `begin`, by the threads that call `run_comm` or `beside` after it.
  v.prepare_comm();
  v.prepare_beside(warp);
  /// All threads of a communication CTA call it, with `comm_smem_bytes` of shared memory or more.
  v.run_comm(shared);
  { V::comm_smem_bytes } -> std::convertible_to<std::size_t>;
  /// Called by the four warps beside the MMA warps, before their roles.
  v.beside(warp, own);
};

template <class Source, class Io>
concept tile_source = source_view<typename Source::template view<Io>>;
template <class Sink, class Io>
concept tile_sink =
    sink_view<typename Sink::template view<Io>> || summing_sink<typename Sink::template view<Io>>;
template <class Senders, class Io>
concept tile_senders =
    std::same_as<typename Senders::run, alone> || senders_view<typename Senders::template view<Io>>;

/// MMA warpgroups hand their results to the epilogue.
struct results_to_epilogue {
  static constexpr bool takes = false;
  static constexpr bool adds = false;
  static constexpr bool gates = false;
};
/// For a source all of whose A is loaded by the producer.
struct no_rows {
  static constexpr int stages = 0;
};

template <class Io>
class local_source::view {
 public:
  __device__ view(const Io& io, const gemm_arguments& given)
      : rotation_(io.rotation), a_(given.a), b_(given.b), k_blocks_(given.schedule.k_blocks) {}
  __device__ void begin(std::uint64_t /*epoch*/) {}
  [[nodiscard]] __device__ int rotated(int row) const { return rotation_.rotated(row); }
  [[nodiscard]] __device__ operand_window window_of(int row, int /*k_block*/) const {
    return {&a_, rotated(row), &b_, 0, k_blocks_};
  }

 private:
  const row_rotation& rotation_;
  const CUtensorMap& a_;
  const CUtensorMap& b_;
  int k_blocks_;
};

template <class Io>
class local_sink::view {
 public:
  __device__ view(const Io& io, const gemm_arguments& given) : c_(given.c), gated_(io.gated) {}
  __device__ void begin(std::uint64_t /*epoch*/) {}
  [[nodiscard]] __device__ destination copy_of(int row, int /*hop*/) const { return {&c_, row}; }
  [[nodiscard]] __device__ const gated_output& gated() const { return gated_; }

 private:
  const CUtensorMap& c_;
  const gated_output& gated_;
};

template <class Io>
class no_senders::view {
 public:
  explicit __device__ view(const Io& /*io*/) {}
  __device__ void prepare_beside(int /*warp*/) {}
  __device__ void beside(int /*warp*/, const epilogue_smem& /*own*/) {}
};

/// The views that each thread makes of its kernel's arguments.
template <class Io>
class io_view {
 public:
  using source_view = typename Io::source_type::template view<Io>;
  using sink_view = typename Io::sink_type::template view<Io>;
  using senders_view = typename Io::senders_type::template view<Io>;
  static constexpr bool has_peers = !std::is_same_v<typename Io::run, alone>;

  source_view source;
  sink_view sink;
  senders_view senders;

  __device__ io_view(const Io& io, const gemm_arguments& given)
      : source(io, given), sink(io, given), senders(io), io_(io) {}

  /// Called by all threads when the previous kernels have ended. Before, only weights are read.
  __device__ void begin(int cluster) {
    if constexpr (has_peers) {
      epoch_ = io_.moved.run.epochs[blockIdx.x] + 1;
      note_gemm_begin(io_.moved.run, io_.comm_ctas, io_.moved.run.epochs[blockIdx.x], cluster);
      source.begin(epoch_);
      sink.begin(epoch_);
      senders.begin(epoch_);
    } else {
      note_gemm_begin(io_, cluster);
    }
  }
  /// Called by all threads of any CTA when it has read A and stored C.
  __device__ void finish() {
    if constexpr (signalling_sink<sink_view>) {
      const bool stored = __syncthreads_and(sink.has_stored() ? 1 : 0) != 0;
      if (threadIdx.x >= 32) return;
      if (threadIdx.x == 0) io_.moved.run.epochs[blockIdx.x] = epoch_;
      sink.finish(stored);
    } else {
      __syncthreads();
      if (threadIdx.x == 0) io_.moved.run.epochs[blockIdx.x] = epoch_;
    }
  }

 private:
  const Io& io_;
  std::uint64_t epoch_ = 0;
};

}  // namespace untax::gpu
