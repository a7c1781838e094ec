#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/tile/order.hpp>

#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/norm/elements.cuh"

namespace untax::gpu {

/// What ranks have left of own rows in this rank's slabs, as an MMA warpgroup adds it up: (partial
/// of rank 0 + partial of rank 1) + ..., in fp32, each rounded to the type, as the sum is then.
///
/// A part of a tile whose rows are all own ones is added on its way to the epilogue, if what peers
/// have is there by then. Until then it goes
/// to the own slab, and is added from there at the end, as is what lies in tiles of other owners.
/// Nobody waits for peers who has still to send to them.
///
/// `Io` is a run with rows that have owners: see `row_partials`.
template <class Io>
class landed_partials {
 public:
  static constexpr bool takes = false;
  static constexpr bool adds = true;

  explicit __device__ landed_partials(const Io& io) : t_(io) {}

  __device__ void next_work() { ++number_; }
  /// The products of a tile are complete.
  template <tile_config config>
  __device__ void begin(const block_view<config>& block, const work_tile& w, int group) {
    // Else what was there would be alive while a tile is multiplied.
    rows_ = columns_ = 0;
    first_ = nullptr;
    asked_ = {};
    if constexpr (!config.swap_ab) {
      const tile_place tile = block.place(w);
      const int row = t_.turn.turned(tile.row) + group * warpgroup_rows;
      asks_ =
          peers() > 0 && t_.adds && t_.owned.has_part(rank(), row) && has_landed(block, w, group);
      if (!asks_) return;
      const int first = row + static_cast<int>(warp() * warp_rows + row_of(0));
      const int column = tile.column + static_cast<int>(word_of_row()) * row_words;
      rows_ = t_.owned.end(rank()) - first;
      columns_ = static_cast<int>(t_.moved.c_stride) - column;
      first_ = in_slab(0, first, column);
      ask(0, 0);
    }
  }
  /// Behind what the lanes of this warp have written of a sub-tile, which begins at `rows`. What
  /// the next one takes is on its way while this one is handed over.
  template <class T, tile_config config>
  __device__ void add(int subtile, std::byte* rows) {
    if constexpr (!config.swap_ab) {
      static_assert(subtile_columns(config) == subtile_side);
      if (!asks_) return;
      __syncwarp();
      eight<T> sums[words];
      for (int peer = 0; peer < peers(); ++peer) {
        if (peer == rank()) join(sums, own_words(rows), rank() == 0);
        join(sums, asked_, peer == 0 && rank() != 0);
        const bool last = peer + 1 == peers();
        if (!last || subtile + 1 < subtiles_of(config))
          ask(last ? subtile + 1 : subtile, last ? 0 : peer + 1);
      }
      if (rank() == peers()) join(sums, own_words(rows), false);
#pragma unroll
      for (unsigned i = 0; i < words; ++i) *word_at(rows, i) = sums[i].pairs();
    }
  }
  /// All own rows of the tiles of this warpgroup that it has not handed over as sums.
  template <class T, tile_config config>
  __device__ void finish(const block_view<config>& block, int group) const {
    if (config.swap_ab || peers() == 0 || !t_.adds) return;
    bool waited = false;
    int number = 0;
    block.each_tile([&](const work_tile& w) {
      const bool is_sum = number++ >= first_sum_;
      if (block.arguments.schedule.stores_partial(w)) return;
      const tile_place tile = block.place(w);
      const int row = t_.turn.turned(tile.row) + group * warpgroup_rows;
      if (is_sum && t_.owned.has_part(rank(), row)) return;
      const int begin = max(row, t_.owned.first(rank()));
      const int end = min(row + warpgroup_rows, t_.owned.end(rank()));
      if (begin >= end) return;
      if (!waited) {
        block.shared.meeting.landed.wait(0);
        block.shared.meeting.stored.wait(0);
        waited = true;
      }
      add_stored<T, config.block_n / row_words>(begin, end, tile.column);
    });
  }

 private:
  // Of the rows of a sub-tile that a warp has, eight lanes take words of 16 bytes that lie side by
  // side.
  static constexpr unsigned warp_rows = 16;
  static constexpr unsigned words = 4;         // of a lane, four rows apart
  static constexpr unsigned stored_words = 8;  // at the end, when a thread has more registers
  template <unsigned count>
  struct lane_words {
    uint4 of[count];
  };

  [[nodiscard]] __device__ int rank() const { return t_.how.rank(); }
  [[nodiscard]] __device__ int peers() const { return t_.how.world() - 1; }
  [[nodiscard]] __device__ std::int64_t row_bytes() const { return t_.moved.c_stride * 2; }
  [[nodiscard]] static __device__ unsigned warp() { return threadIdx.x % warpgroup_threads / 32; }
  [[nodiscard]] static __device__ unsigned word_of_row() { return threadIdx.x % 8; }
  [[nodiscard]] static __device__ unsigned row_of(unsigned word) {
    return threadIdx.x % 32 / 8 + word * (warp_rows / words);
  }
  [[nodiscard]] __device__ const std::byte* in_slab(int source, int row, int column) const {
    return t_.moved.run.inbox.local() + source * t_.slab_bytes +
           (row - t_.owned.slab_begin(rank())) * row_bytes() + column * 2;
  }

  /// Whether what peers have is there, the same for all threads of the warpgroup; once it is, it
  /// stays. It is awaited where it has to be on its way: a tile after this block has sent all; and
  /// behind the last tile, where there is nothing else to do.
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
  static __device__ void join(eight<T> (&sums)[count], const lane_words<count>& more, bool first) {
#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      if (first) {
        sums[i] = eight<T>::of(more.of[i]);
      } else {
        sums[i].add(eight<T>::of(more.of[i]));
      }
    }
  }
  /// As TMA will take it: see `mma_consumer`.
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
  /// What a peer has of a sub-tile, in the order of ranks.
  __device__ void ask(int subtile, int peer) {
    const int source = peer < rank() ? peer : peer + 1;
    const int column = subtile * subtile_side;
    const std::byte* const at = first_ + source * t_.slab_bytes + column * 2;
#pragma unroll
    for (unsigned i = 0; i < words; ++i) {
      constexpr int apart = warp_rows / words;
      const int row = static_cast<int>(i) * apart;
      asked_.of[i] = row < rows_ && column < columns_
                         ? *reinterpret_cast<const uint4*>(at + row * row_bytes())
                         : uint4{};
    }
  }

  /// Rows [begin, end) of so many words from a column on, of the slabs of all ranks. A block comes
  /// here once, so there is little code to fetch.
  template <class T, int row_width>
  __device__ void add_stored(int begin, int end, int column) const {
    constexpr int rows = warpgroup_threads / row_width;  // at once
    const int thread = static_cast<int>(threadIdx.x) % warpgroup_threads;
    column += thread % row_width * row_words;
    if (thread >= rows * row_width || column >= t_.moved.c_stride) return;
    const std::int64_t apart = rows * row_bytes();
#pragma unroll 1
    for (int row = begin + thread / row_width; row < end;
         row += static_cast<int>(stored_words) * rows) {
      const int left = end - row;
      const std::byte* slab = in_slab(0, row, column);
      eight<T> sums[stored_words];
#pragma unroll 1
      for (int source = 0; source <= peers(); ++source, slab += t_.slab_bytes) {
        lane_words<stored_words> more;
#pragma unroll
        for (unsigned i = 0; i < stored_words; ++i)
          more.of[i] = static_cast<int>(i) * rows < left
                           ? __ldcs(reinterpret_cast<const uint4*>(slab + i * apart))
                           : uint4{};
        join(sums, more, source == 0);
      }
#pragma unroll
      for (unsigned i = 0; i < stored_words; ++i) {
        if (static_cast<int>(i) * rows < left)
          store(row + static_cast<int>(i) * rows, column, sums[i].pairs());
      }
    }
  }
  /// The own result last: who is far waits longest.
  __device__ void store(int row, int column, const uint4& word) const {
    const int world = t_.how.world();
    const int first = t_.passes_on ? 0 : t_.owned.first(rank());
    for (int hop = t_.passes_on ? 1 : world; hop <= world; ++hop) {
      std::byte* const result =
          t_.moved.run.out + (receiver_at_hop(rank(), hop, world) - rank()) * t_.moved.run.between;
      *reinterpret_cast<uint4*>(result + (row - first) * row_bytes() + column * 2) = word;
    }
  }

  const Io& t_;
  int number_ = -1;                        // of the work at hand
  int first_sum_ = peer_meeting::no_sums;  // with which parts begin that are sums
  bool sent_before_ = false;  // all that goes to peers, before the tile at hand was multiplied
  bool asks_ = false;
  int rows_ = 0;                      // of the own ones, from that of this lane's first word on
  int columns_ = 0;                   // of C, the same
  const std::byte* first_ = nullptr;  // of that word, in the slab of rank 0
  lane_words<words> asked_;
};

}  // namespace untax::gpu
