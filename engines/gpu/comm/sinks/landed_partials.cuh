#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/tile/order.hpp>

#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/norm/elements.cuh"

namespace untax::gpu {

/// Adds the partial results of own rows in an MMA warpgroup. All ranks have stored them in this
/// rank's slabs: (partial of rank 0 + partial of rank 1) + ..., in fp32. Each partial is rounded to
/// the type, and so is the sum.
///
/// A part of a tile whose rows all belong to this rank is added on its way to the epilogue, if the
/// peers' partials have arrived. If not, it is stored in the own slab and added at the end, like
/// own rows in parts that several ranks own. No block waits for peers before it has sent them
/// everything.
///
/// `Io` is the run of a kernel whose rows have owners: see `row_partials`.
template <class Io>
class landed_partials {
 public:
  static constexpr bool takes = false;
  static constexpr bool adds = true;
  static constexpr bool gates = false;

  explicit __device__ landed_partials(const Io& io) : io_(io) {}

  __device__ void next_work() { ++number_; }
  /// Called when a tile has been multiplied.
  template <tile_config config>
  __device__ void begin(const block_view<config>& block, const work_tile& w, int group) {
    // Without this assignment the old values would occupy registers while a tile is multiplied.
    rows_ = columns_ = 0;
    first_ = nullptr;
    fetched_ = {};
    if constexpr (!config.swap_ab) {
      const tile_place tile = block.place(w);
      const int row = io_.rotation.rotated(tile.row) + group * warpgroup_rows;
      adds_tile_ =
          peers() > 0 && io_.adds && io_.owned.has_part(rank(), row) && has_landed(block, w, group);
      if (!adds_tile_) return;
      const int first = row + static_cast<int>(warp() * warp_rows + row_of(0));
      const int column = tile.column + static_cast<int>(word_of_row()) * row_words;
      rows_ = io_.owned.end(rank()) - first;
      columns_ = static_cast<int>(io_.moved.c_stride) - column;
      first_ = in_slab(0, first, column);
      fetch(0, 0);
    }
  }
  /// Called after the lanes of this warp have written a sub-tile to `rows`: adds the peers'
  /// partials to it. The loads of the next partials are in flight meanwhile.
  template <class T, tile_config config>
  __device__ void add(int subtile, std::byte* rows) {
    if constexpr (!config.swap_ab) {
      static_assert(subtile_columns(config) == subtile_side);
      if (!adds_tile_) return;
      __syncwarp();
      eight<T> sums[words];
      for (int peer = 0; peer < peers(); ++peer) {
        if (peer == rank()) accumulate(sums, own_words(rows), rank() == 0);
        accumulate(sums, fetched_, peer == 0 && rank() != 0);
        const bool last = peer + 1 == peers();
        if (!last || subtile + 1 < subtiles_of(config))
          fetch(last ? subtile + 1 : subtile, last ? 0 : peer + 1);
      }
      if (rank() == peers()) accumulate(sums, own_words(rows), false);
#pragma unroll
      for (unsigned i = 0; i < words; ++i) *word_at(rows, i) = sums[i].pairs();
    }
  }
  /// Adds all own rows of this warpgroup's tiles that were not stored as sums.
  template <class T, tile_config config>
  __device__ void finish(const block_view<config>& block, int group) const {
    if (config.swap_ab || peers() == 0 || !io_.adds) return;
    bool waited = false;
    int number = 0;
    block.each_tile([&](const work_tile& w) {
      const bool is_sum = number++ >= first_sum_;
      if (block.arguments.schedule.stores_partial(w)) return;
      const tile_place tile = block.place(w);
      const int row = io_.rotation.rotated(tile.row) + group * warpgroup_rows;
      if (is_sum && io_.owned.has_part(rank(), row)) return;
      const int begin = max(row, io_.owned.first(rank()));
      const int end = min(row + warpgroup_rows, io_.owned.end(rank()));
      if (begin >= end) return;
      if (!waited) {
        block.shared.meeting.landed.wait(0);
        block.shared.meeting.stored.wait(0);
        waited = true;
      }
      add_deferred<T, config.block_n / row_words>(begin, end, tile.column);
    });
  }

 private:
  // Eight lanes cover a row of a sub-tile, with adjacent words of 16 bytes.
  static constexpr unsigned warp_rows = 16;
  static constexpr unsigned words = 4;         // per lane, four rows apart
  static constexpr unsigned stored_words = 8;  // per thread at the end, with more registers
  template <unsigned count>
  struct lane_words {
    uint4 of[count];
  };

  [[nodiscard]] __device__ int rank() const { return io_.how.rank(); }
  [[nodiscard]] __device__ int peers() const { return io_.how.world() - 1; }
  [[nodiscard]] __device__ std::int64_t row_bytes() const { return io_.moved.c_stride * 2; }
  [[nodiscard]] static __device__ unsigned warp() { return threadIdx.x % warpgroup_threads / 32; }
  [[nodiscard]] static __device__ unsigned word_of_row() { return threadIdx.x % 8; }
  [[nodiscard]] static __device__ unsigned row_of(unsigned word) {
    return threadIdx.x % 32 / 8 + word * (warp_rows / words);
  }
  [[nodiscard]] __device__ const std::byte* in_slab(int source, int row, int column) const {
    return io_.moved.run.inbox.local() + source * io_.slab_bytes +
           (row - io_.owned.slab_begin(rank())) * row_bytes() + column * 2;
  }

  /// Whether the peers' partials have arrived: the same answer for all threads of the warpgroup,
  /// and true for all later tiles. The function waits for the partials in the tile after this block
  /// has sent everything, or in the last tile, all of whose rows this rank owns
  /// (`row_sums_model::faults` checks that).
  template <tile_config config>
  [[nodiscard]] __device__ bool has_landed(const block_view<config>& block, const work_tile& w,
                                           int group) {
    if (number_ >= first_sum_) return true;
    peer_meeting& meeting = block.shared.meeting;
    if (sent_before_ || !block.next(w).valid()) {
      meeting.landed.wait(0);
    } else if (!all_of_warpgroup(2 + group, meeting.landed.has_ended(0))) {
      sent_before_ = all_of_warpgroup(2 + group, meeting.sent.has_ended(0));
      return false;
    }
    first_sum_ = number_;
    if (threadIdx.x % warpgroup_threads == 0) meeting.first_sum[group] = number_;
    return true;
  }

  template <class T, unsigned count>
  static __device__ void accumulate(eight<T> (&sums)[count], const lane_words<count>& more,
                                    bool first) {
#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      if (first) {
        sums[i] = eight<T>::of(more.of[i]);
      } else {
        sums[i].add(eight<T>::of(more.of[i]));
      }
    }
  }
  /// The address of a word in the swizzled layout from which TMA stores: see `mma_consumer`.
  [[nodiscard]] static __device__ uint4* word_at(std::byte* rows, unsigned i) {
    const unsigned row = warp() * warp_rows + row_of(i);
    return reinterpret_cast<uint4*>(rows + row * (subtile_side * 2) +
                                    (word_of_row() ^ (row % 8)) * 16);
  }
  [[nodiscard]] static __device__ lane_words<words> own_words(std::byte* rows) {
    lane_words<words> own;
#pragma unroll
    for (unsigned i = 0; i < words; ++i) own.of[i] = *word_at(rows, i);
    return own;
  }
  /// Loads the partials of peer number `peer`, in rank order, for a sub-tile.
  __device__ void fetch(int subtile, int peer) {
    const int source = peer < rank() ? peer : peer + 1;
    const int column = subtile * subtile_side;
    const std::byte* const at = first_ + source * io_.slab_bytes + column * 2;
#pragma unroll
    for (unsigned i = 0; i < words; ++i) {
      constexpr int apart = warp_rows / words;
      const int row = static_cast<int>(i) * apart;
      fetched_.of[i] = row < rows_ && column < columns_
                           ? *reinterpret_cast<const uint4*>(at + row * row_bytes())
                           : uint4{};
    }
  }

  /// Adds rows [begin, end) of the slabs of all ranks, `row_width` words from `column` on. Each
  /// block runs this once, so the code is small: it has to be fetched first.
  template <class T, int row_width>
  __device__ void add_deferred(int begin, int end, int column) const {
    constexpr int rows = warpgroup_threads / row_width;  // at once
    const int thread = static_cast<int>(threadIdx.x) % warpgroup_threads;
    column += thread % row_width * row_words;
    if (thread >= rows * row_width || column >= io_.moved.c_stride) return;
    const std::int64_t apart = rows * row_bytes();
#pragma unroll 1
    for (int row = begin + thread / row_width; row < end;
         row += static_cast<int>(stored_words) * rows) {
      const int left = end - row;
      const std::byte* slab = in_slab(0, row, column);
      eight<T> sums[stored_words];
#pragma unroll 1
      for (int source = 0; source <= peers(); ++source, slab += io_.slab_bytes) {
        lane_words<stored_words> more;
#pragma unroll
        for (unsigned i = 0; i < stored_words; ++i)
          more.of[i] = static_cast<int>(i) * rows < left
                           ? __ldcs(reinterpret_cast<const uint4*>(slab + i * apart))
                           : uint4{};
        accumulate(sums, more, source == 0);
      }
#pragma unroll
      for (unsigned i = 0; i < stored_words; ++i) {
        if (static_cast<int>(i) * rows < left)
          store(row + static_cast<int>(i) * rows, column, sums[i].pairs());
      }
    }
  }
  /// Stores to the ranks in the order of hops, to this rank last.
  __device__ void store(int row, int column, const uint4& word) const {
    const int world = io_.how.world();
    const int first = io_.passes_on ? 0 : io_.owned.first(rank());
    for (int hop = io_.passes_on ? 1 : world; hop <= world; ++hop) {
      std::byte* const result = io_.moved.run.out + (receiver_at_hop(rank(), hop, world) - rank()) *
                                                        io_.moved.run.between;
      *reinterpret_cast<uint4*>(result + (row - first) * row_bytes() + column * 2) = word;
    }
  }

  const Io& io_;
  int number_ = -1;                        // index of the current work
  int first_sum_ = peer_meeting::no_sums;  // index of the first work stored as sums
  bool sent_before_ = false;  // peers had everything before the current tile was multiplied
  bool adds_tile_ = false;
  int rows_ = 0;                      // own rows from this lane's first word on
  int columns_ = 0;                   // columns of C, likewise
  const std::byte* first_ = nullptr;  // this lane's first word in the slab of rank 0
  lane_words<words> fetched_;
};

}  // namespace untax::gpu
