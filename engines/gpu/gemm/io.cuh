#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda.h>

#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/sinks/peer_meeting.cuh"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/trace/gemm_notes.cuh"

namespace untax::gpu {

/// Which part of C a role is about to read for, or has written: first row and column. Rows
/// are numbered in raster order, which for a gather differs from their order in A.
struct tile_place {
  int row = 0;
  int column = 0;
};

/// K-blocks of both operands that lie in one place each, and arrive together.
struct operand_window {
  const CUtensorMap* a = nullptr;
  int a_row = 0;  ///< in the matrix that `a` describes
  const CUtensorMap* b = nullptr;
  int first = 0;  ///< the k-block at column 0 of both matrices
  int end = 0;    ///< the k-block after the last one
};

/// Where a part of C goes.
struct destination {
  const CUtensorMap* c = nullptr;
  int row = 0;  ///< in the matrix that `c` describes
};

/// Copies of C, in the order of hops: this rank's is the first, and behind that of the last hop it
/// comes again.
struct copy_hops {
  int first = 0;
  int count = 1;

  [[nodiscard]] __device__ int at(int i, int world) const {
    const int hop = first + i;
    return hop < world ? hop : hop - world;
  }
  /// How many are peers'.
  [[nodiscard]] __device__ int peers(int world) const {
    return count - (count > 0 && (first == 0 || first + count > world) ? 1 : 0);
  }
};

/// What an epilogue warp may use until its first sub-tile: the epilogue buffers, to move other
/// things through.
struct epilogue_smem {
  std::byte* bytes = nullptr;      ///< at a multiple of 1024; none of a warp that stores nothing
  stage_barrier* moved = nullptr;  ///< of one arrival, in its first phase
};

/// What a source does: says where k-blocks of both operands lie.
template <class V>
concept source_view = requires(V& v, int row, int k_block) {
  /// The window in which a k-block lies, for rows of A from a tile's first one on. Before `begin`
  /// only what it says of B holds.
  { v.window_of(row, k_block) } -> std::same_as<operand_window>;
};
/// A source of operands that are ready from the start.
template <class V>
concept present_source = source_view<V> && requires(V& v, int row) {
  /// The row of A that lies at `row` in the order of the GEMM.
  { v.rotated(row) } -> std::same_as<int>;
};
/// A source whose k-blocks arrive while the kernel runs.
template <class V>
concept awaited_source = source_view<V> && requires(V& v, int row, int rows, int begin, int end) {
  /// By a warp: up to which k-block these rows have arrived, of k-blocks of one window. Acquires
  /// them.
  { v.arrived_until(row, rows, begin, end) } -> std::same_as<int>;
  /// Waits for all of them.
  v.await(row, rows, begin, end);
  /// Whether the fourth warp calls these two, ahead of the producer. Then the producer calls
  /// `is_own_window`: whether a window is this rank's own, so that nothing has to arrive.
  { v.polls() } -> std::same_as<bool>;
  { v.is_own_window(row, begin) } -> std::same_as<bool>;
};
/// A source that signals when it has been read.
template <class V>
concept retired_source = source_view<V> && requires(V& v) {
  /// Whether it is, in this launch.
  { v.counts_readers() } -> std::same_as<bool>;
  /// The producer, when the CTA has read what it needs.
  v.retire();
};
/// A source that loads A into the ring itself, past the producer: all threads of an MMA warpgroup
/// call its `rows`.
template <class V>
concept bringing_source = source_view<V> && requires(V& v, int group) {
  /// `rows::stages`: how many stages are loaded together. `request(k_block, count)` starts to load
  /// the rows of so many of the group's k-blocks; what it returns goes to `settle(requested, count,
  /// place)`, which waits for them and writes those of k-block i to `place(i)`, as the tensor cores
  /// read them. Rows beyond those of A may be left as they are.
  { v.rows_for(group) } -> std::same_as<typename V::rows>;
};

/// What a sink does: says where parts of C go.
template <class V>
concept sink_view = requires(V& v, int row, int hop) {
  /// Where a part of a tile goes that begins at a row, in the copy of C so many hops away.
  { v.copy_of(row, hop) } -> std::same_as<destination>;
};
/// A sink that signals to peers what has been stored.
template <class V>
concept signalling_sink = sink_view<V> && requires(V& v, const tile_place& tile, bool stored) {
  /// An epilogue warp, before its first store.
  v.before_store();
  /// To which copies of C, of those of so many ranks, a part of a tile goes that begins at a row.
  { v.copies_of(tile.row) } -> std::same_as<copy_hops>;
  { v.world() } -> std::same_as<int>;
  /// Whether a tile is stored before its place is used again.
  { v.in_turn() } -> std::same_as<bool>;
  /// By a thread of an epilogue warp, when it has issued all stores of its half of a tile.
  v.after_tile(tile);
  /// By all threads at the end: whether this one stored what it had to. Then `finish` by the first
  /// warp, with whether all did.
  { v.has_stored() } -> std::same_as<bool>;
  v.finish(stored);
};

/// A signalling sink that adds the partial results of all ranks for the rows that this one owns.
template <class V>
concept adding_sink = signalling_sink<V> && requires(V& v, peer_meeting& meeting) {
  /// By a thread of an epilogue warp: `last_sent(block, group)` is the last work on a tile of which
  /// parts go to peers. Then it says of each tile whether it is one of sums, and when everything
  /// has been sent, and when everything has been stored.
  v.take_sums(true);
  v.has_sent(meeting);
  v.end_stores(meeting, true);
  /// By the fourth warp: signals to peers when all blocks have sent, and waits for what peers send.
  v.meet(meeting);
  /// For a thread of an MMA warpgroup: `next_work()`; `begin(block, work, group)` of a tile that it
  /// hands to the epilogue; `add<T, config>(subtile, rows)` after it has written a sub-tile; and at
  /// the end `finish<T>(block, group)`.
  { v.partials() } -> std::same_as<typename V::peers_partials>;
};

/// A sink that takes the sums of tiles from the MMA warpgroups, past the epilogue.
template <class V>
concept summing_sink = requires(V& v, int group) {
  /// For a warp of a group: `begin()`, then `take<T, config>(block, place, sums)` of each of its
  /// tiles, then `left(block)`, whose result goes to `after_results(block, group, left)`.
  { v.results_of(group) } -> std::same_as<typename V::results>;
};

/// What senders do that are part of the kernel.
template <class V>
concept senders_view = requires(V& v, int warp, std::byte* shared, const epilogue_smem& own) {
  /// Before `begin`, by those who call the other two after it.
  v.prepare_comm();
  v.prepare_beside(warp);
  /// All threads of a communication CTA, which has `comm_smem_bytes` of shared memory at least.
  v.run_comm(shared);
  { V::comm_smem_bytes } -> std::convertible_to<std::size_t>;
  /// The four warps beside those that multiply, before their roles.
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

/// Results go to the epilogue.
struct results_to_epilogue {
  static constexpr bool takes = false;
  static constexpr bool adds = false;
};
/// Of a source of which the producer loads all of A.
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
  __device__ view(const Io& /*io*/, const gemm_arguments& given) : c_(given.c) {}
  __device__ void begin(std::uint64_t /*epoch*/) {}
  [[nodiscard]] __device__ destination copy_of(int row, int /*hop*/) const { return {&c_, row}; }

 private:
  const CUtensorMap& c_;
};

template <class Io>
class no_senders::view {
 public:
  explicit __device__ view(const Io& /*io*/) {}
};

/// What each thread makes of what its kernel was given.
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

  /// All threads, when the kernels ahead have ended. Before that memory is not touched.
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
  /// All threads of any CTA, when it has read A and stored C.
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
