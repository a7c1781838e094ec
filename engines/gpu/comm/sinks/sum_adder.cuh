#pragma once

#include <untax/rma/device_group.cuh>
#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/comm/sinks/owner_sums.hpp"
#include "engines/gpu/comm/sinks/sum_results.cuh"
#include "engines/gpu/gemm/schedule.hpp"
#include "engines/gpu/words/partial_words.cuh"
#include "engines/gpu/words/slab_words.cuh"

namespace untax::gpu {

/// The tiles of a warp with sums that are deferred to the end: a bit for each of the last 31 tiles
/// that it multiplied, and one for all tiles before. (One register: MMA warpgroups have no more.)
class deferred_tiles {
 public:
  /// Called when the warp has multiplied another tile.
  __device__ void begin_tile() { bits_ = bits_ >> 1U | (bits_ & 1U); }
  /// Marks the tile multiplied last: some of its sums are deferred.
  __device__ void add() { bits_ |= 1U << newest; }
  [[nodiscard]] __device__ bool none() const { return bits_ == 0; }
  /// Whether a tile may have deferred sums: the tile after which the warp multiplied `later` more.
  [[nodiscard]] __device__ bool has(int later) const {
    return (bits_ >> max(newest - later, 0) & 1U) != 0;
  }

 private:
  static constexpr int newest = 31;
  unsigned bits_ = 0;
};

/// Adds, by a warp, the fragments that this rank owns, in rank order.
class sum_adder {
 public:
  static constexpr int stored = stored_together;

  /// `slot`: the warp's wait record.
  __device__ sum_adder(const sums_run& io, std::uint64_t epoch, int slot)
      : io_(io),
        epoch_(epoch),
        slot_(slot),
        first_row_(io.how.first_row(io.how.rank())),
        end_row_(io.how.end_row(io.how.rank())) {}

  /// `first`: the first summand, which replaces `sums`.
  __device__ static void add_to(float4& sums, const float4& more, bool first) {
    sums = first ? more
                 : make_float4(sums.x + more.x, sums.y + more.y, sums.z + more.z, sums.w + more.w);
  }

  /// A bit for each of `together` adjacent fragments, from `first` on, that this rank adds.
  template <int together>
  [[nodiscard]] __device__ unsigned wanted_of(const sum_fragment& first) const {
    return io_.how.mask_of(first_row_, end_row_, first, together);
  }

  /// Adds a warp's fragments of a tile, from `first` on, as far as the words of all ranks have
  /// arrived. Returns false if some have not. It calls no function, so MMA warpgroups can run it
  /// between tiles.
  template <class T, bool swap_ab>
  [[nodiscard]] __device__ __forceinline__ bool try_tile(const sum_fragment& first) const {
    return io_.how.halves ? try_words<T, partial_words<T, true>, swap_ab>(first)
                          : try_words<T, partial_words<T, false>, swap_ab>(first);
  }
  /// As `try_tile`, between two ranks: own partials are still in registers. They are stored to
  /// memory where the peer's partials have not arrived.
  template <class T, class Words, bool swap_ab, int parts>
  [[nodiscard]] __device__ __forceinline__ bool try_with_own(const sum_fragment& first,
                                                             const float (&own)[parts * 4]) const {
    constexpr int most = 128 / static_cast<int>(sizeof(typename Words::words));
    constexpr int together = parts < stored ? stored : parts < most ? parts : most;
    bool all = true;
#pragma unroll
    for (int begin = 0; begin < parts; begin += together) {
      const sum_fragment f = beside(first, begin);
      const unsigned wanted = wanted_of<together>(f);
      if (wanted == 0) continue;
      slab_place<Words> at = place_of<Words>(f, wanted);
      at.skipped = io_.how.rank();
      at.count = 1;
      slab_words<Words, 1, together> words(at);
      bool arrived = io_.polls > 0 && words.poll();
      // Wider tiles leave no registers for a loop around so many words.
      if constexpr (parts <= 16) {
#pragma unroll 1
        for (int polls = 1; polls < io_.polls && !arrived; ++polls) arrived = words.poll();
      }
      if (arrived) {
        if (!left_out(mutant::sums_reset)) words.reset_words();
#pragma unroll
        for (int four = 0; four < together; four += stored) {
          float4 sums[stored];
#pragma unroll
          for (int part = 0; part < stored; ++part) {
            sums[part] = Words::sums_of(words.found[0][four + part]);
            // The sum of two does not depend on their order.
            const int mine = begin + four + part;
            if (mine < parts) add_to(sums[part], Words::sums_of(Words::of(own + 4 * mine)), false);
          }
          sum_results<T>(io_, first_row_, end_row_)
              .template store<swap_ab>(beside(f, four), wanted >> four, sums);
        }
      } else {
        all = false;
#pragma unroll
        for (int part = 0; part < together && begin + part < parts; ++part) {
          if ((wanted >> part & 1U) != 0)
            store_sum_words(at.base + io_.how.rank() * at.stride + part * sum_fragments::lanes,
                            Words::of(own + 4 * (begin + part)));
        }
      }
    }
    return all;
  }
  /// Adds all fragments of a list. All lanes must call this. Returns false after a failed wait.
  template <class List>
  [[nodiscard]] __device__ bool add_all(List& list) const {
#pragma unroll 1
    for (; list.valid(); list.advance()) {
      const unsigned wanted = wanted_of<stored>(list.first);
      if (wanted != 0 && !add(list.first, wanted, list.some_added)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] __device__ static sum_fragment beside(sum_fragment f, int parts) {
    f.part += parts;
    return f;
  }

  /// Loads as many words at once as registers hold, since each poll is a round trip to memory: with
  /// two ranks the words of many fragments, with more ranks those of fewer fragments.
  template <class T, class Words, bool swap_ab>
  [[nodiscard]] __device__ __forceinline__ bool try_words(const sum_fragment& first) const {
    constexpr int words = 256 / static_cast<int>(sizeof(typename Words::words));
    if (io_.how.world() <= 2) return try_words_of<T, Words, swap_ab, 2, words / 2>(first);
    return try_words_of<T, Words, swap_ab, words / stored, stored>(first);
  }
  template <class T, class Words, bool swap_ab, int ranks, int together>
  [[nodiscard]] __device__ __forceinline__ bool try_words_of(sum_fragment f) const {
    if (io_.how.world() > ranks) return false;
    bool all = true;
#pragma unroll 1
    for (; io_.how.parts > f.part; f.part += together) {
      const unsigned wanted = wanted_of<together>(f);
      if (wanted == 0) continue;
      slab_place<Words> at = place_of<Words>(f, wanted);
      at.count = io_.how.world();
      slab_words<Words, ranks, together> words(at);
      if (words.poll()) {
        add_found<T, swap_ab>(f, wanted, words);
      } else {
        all = false;
      }
    }
    return all;
  }
  /// Adds the words of all ranks of some fragments, and stores the sums in C.
  template <class T, bool swap_ab, class Words, int ranks, int together>
  __device__ __forceinline__ void add_found(const sum_fragment& first, unsigned wanted,
                                            const slab_words<Words, ranks, together>& words) const {
    if (!left_out(mutant::sums_reset)) words.reset_words();
#pragma unroll
    for (int begin = 0; begin < together; begin += stored) {
      float4 sums[stored];
#pragma unroll
      for (int i = 0; i < ranks; ++i) {
        if (i >= words.at.count) break;
#pragma unroll
        for (int part = 0; part < stored; ++part)
          add_to(sums[part], Words::sums_of(words.found[i][begin + part]), i == 0);
      }
      sum_results<T>(io_, first_row_, end_row_)
          .template store<swap_ab>(beside(first, begin), wanted >> begin, sums);
    }
  }

  /// Adds adjacent fragments, some of which may have been added already, and stores the sums in C.
  [[nodiscard]] __device__ bool add(const sum_fragment& first, unsigned wanted,
                                    bool some_added) const {
    if (io_.type == dtype::f16)
      return io_.how.halves ? add<__half, true>(first, wanted, some_added)
                            : add<__half, false>(first, wanted, some_added);
    return io_.how.halves ? add<__nv_bfloat16, true>(first, wanted, some_added)
                          : add<__nv_bfloat16, false>(first, wanted, some_added);
  }
  /// (partial of rank 0 + partial of rank 1) + ... This runs after the last tile, when the GEMM has
  /// flushed these instructions out of L2: fetching them takes longer than loading the words. So
  /// they are few, and contiguous.
  template <class T, bool halves>
  [[nodiscard]] __device__ __forceinline__ bool add(const sum_fragment& first, unsigned wanted,
                                                    bool some_added) const {
    using to = partial_words<T, halves>;
    constexpr int ranks = halves ? 4 : 2;
    slab_words<to, ranks, stored> words(place_of<to>(first, wanted));
    words.at.count = min(io_.how.world(), ranks);
    slab_words<to, 1, stored> own(words.at);
    own.at.begin = io_.how.rank();
    own.at.count = some_added ? 1 : 0;
    own.fetch();
    words.fetch();
    // Adding also resets the own words: fragments whose own words are still there were not added.
    words.at.wanted &= own.have_arrived_of_lanes();
    if (words.at.wanted == 0) return true;
    float4 sums[stored];
#pragma unroll 1
    for (;;) {
      if (!words.compact_await(io_.moved.run, slot_)) return false;
      if (!left_out(mutant::sums_reset)) words.reset_words();
#pragma unroll
      for (int i = 0; i < ranks; ++i) {
        if (i >= words.at.count) break;
#pragma unroll
        for (int part = 0; part < stored; ++part)
          add_to(sums[part], to::sums_of(words.found[i][part]), words.at.begin + i == 0);
      }
      words.at.begin += ranks;
      if (words.at.begin >= io_.how.world()) break;
      words.at.count = min(io_.how.world() - words.at.begin, ranks);
      words.fetch();
    }
    const sum_results<T> results(io_, first_row_, end_row_);
    if (io_.how.swap_ab) {
      results.template store<true>(first, words.at.wanted, sums);
    } else {
      results.template store<false>(first, words.at.wanted, sums);
    }
    return true;
  }

  /// Where the words of adjacent fragments lie in the inbox.
  template <class Words>
  [[nodiscard]] __device__ slab_place<Words> place_of(const sum_fragment& first,
                                                      unsigned wanted) const {
    slab_place<Words> at;
    at.stride = io_.slab_bytes / static_cast<std::int64_t>(sizeof(typename Words::words));
    at.wanted = wanted;
    at.epoch = epoch_;
    at.room = io_.how.slab_of(0, epoch_);
    at.base = reinterpret_cast<typename Words::words*>(io_.moved.run.inbox.local()) +
              at.room * at.stride + io_.how.slot_of(io_.how.rank(), first) * sum_fragments::lanes +
              device_warp::thread_rank();
    return at;
  }

  const sums_run& io_;
  std::uint64_t epoch_;
  int slot_;
  int first_row_;
  int end_row_;
};

/// The fragments that a warp adds, some adjacent ones at a time.
class sums_list {
 public:
  sum_fragment first;
  bool some_added = false;  ///< some were added already, and are skipped

  /// The share of warp `me` of `io.adding_warps` warps, in the order in which the owner adds.
  __device__ sums_list(const sums_run& io, int me)
      : how_(io.how),
        row_(io.how.parts % in_row == 0 ? in_row : io.how.parts),
        at_(me * row_),
        step_(io.adding_warps * row_),
        going_(at_ < io.how.fragments_of(io.how.rank())) {
    if (going_) begin(how_.fragment_of(how_.rank(), at_), row_);
  }
  /// The `deferred` sums of the tiles that a warp of `group` multiplied, in block `m_place` of the
  /// `cluster_tiles` blocks of a cluster.
  __device__ sums_list(const sums_run& io, const tile_scheduler& order, int cluster,
                       int cluster_tiles, int m_place, int group, deferred_tiles deferred)
      : some_added(io.polls > 0 || io.lands_by_tma),
        how_(io.how),
        order_(&order),
        cluster_(cluster),
        cluster_tiles_(cluster_tiles),
        m_place_(m_place),
        group_(group),
        deferred_(deferred) {
    const work_tile first_tile = finished_from(order.first(cluster));
    for (work_tile w = first_tile; w.valid(); w = finished_from(order.next(cluster, w))) ++later_;
    begin_tile(first_tile);
  }

  [[nodiscard]] __device__ bool valid() const { return going_; }
  __device__ void advance() {
    first.part += sum_adder::stored;
    if (first.part < end_) return;
    if (order_ != nullptr) return begin_tile(finished_from(order_->next(cluster_, tile_)));
    at_ += step_;
    going_ = at_ < how_.fragments_of(how_.rank());
    if (going_) begin(how_.fragment_of(how_.rank(), at_), row_);
  }

 private:
  static constexpr int in_row = 8;  ///< adjacent fragments per step, if this divides `parts`

  __device__ void begin(const sum_fragment& f, int parts) {
    first = f;
    end_ = f.part + parts;
  }
  /// The first work from `w` on whose tile this block finishes; other clusters finish those before.
  [[nodiscard]] __device__ work_tile finished_from(work_tile w) const {
    while (w.valid() && order_->stores_partial(w)) w = order_->next(cluster_, w);
    return w;
  }
  /// Begins the first tile from `w` on that has deferred sums.
  __device__ void begin_tile(work_tile w) {
    while (w.valid() && !deferred_.has(--later_)) w = finished_from(order_->next(cluster_, w));
    going_ = w.valid();
    if (!going_) return;
    tile_ = w;
    const tile_scheduler::coord at = order_->at(w.tile);
    const int m = at.m * cluster_tiles_ + m_place_;
    const int row_tile = how_.rotated((how_.swap_ab ? at.n : m) * how_.tile_m) / how_.tile_m;
    begin({row_tile, how_.swap_ab ? m : at.n, group_,
           static_cast<int>(threadIdx.x) / 32 % sum_fragments::warps, 0},
          how_.parts);
  }

  const sum_fragments& how_;
  int row_ = 0;
  int at_ = 0;
  int step_ = 0;
  const tile_scheduler* order_ = nullptr;
  work_tile tile_;
  int cluster_ = 0;
  int cluster_tiles_ = 1;
  int m_place_ = 0;
  int group_ = 0;
  deferred_tiles deferred_;
  int later_ = 0;  // finished tiles after the current one
  int end_ = 0;
  bool going_ = false;
};

/// Adds the fragments of a list, by a warp, and then retires the slabs. Not inlined: two roles with
/// different numbers of registers call it, and the compiler would merge the copies into one that
/// fits neither.
static __device__ __noinline__ void add_sums(const sums_run& io, sums_list list,
                                             std::uint64_t epoch, int slot) {
  // After a failed wait, which the host reports, nothing is signalled.
  if (sum_adder(io, epoch, slot).add_all(list) && io.how.reserves())
    retire_slabs(io.moved.run, io.how, *io.done, io.adding_warps, epoch, slot);
}
/// Only retires the slabs, for a warp without deferred sums.
static __device__ __noinline__ void end_sums(const sums_run& io, std::uint64_t epoch, int slot) {
  if (io.how.reserves()) retire_slabs(io.moved.run, io.how, *io.done, io.adding_warps, epoch, slot);
}

}  // namespace untax::gpu
