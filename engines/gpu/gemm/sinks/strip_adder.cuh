#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/gemm/sinks/sum_results.cuh"
#include "engines/gpu/sm90/ptx/sum_words.cuh"

namespace untax::gpu {

/// A warp that adds strips of this rank's rows, in the order of the ranks, while MMA warpgroups go
/// on. A strip is what a warp of an MMA warpgroup has of a sub-tile, 16 rows by 64 columns, as
/// 16-bit partials. Own words lie in shared memory, those of peers in slabs; all have the same
/// form, so a lane takes 16 bytes of each at the same place. Those of the next strip are asked for
/// before this one is added, since each look takes the way to memory.
template <class T>
class strip_adder {
 public:
  static constexpr int parts = subtile_side / 8;  ///< fragments of a strip
  static constexpr int bytes = parts * sum_fragments::lanes * 8;

  __device__ strip_adder(const sums_run& io, std::uint64_t epoch)
      : t_(io),
        slab_of_rank_0_(io.moved.run.inbox.local() + io.how.slab_of(0, epoch) * io.slab_bytes) {}

  /// Adds so many strips into C, by all lanes: that of a warp which begins with fragment `first`,
  /// and those of the warps `step` further on, sub-tile by sub-tile. `own(i)` waits for the own
  /// words of strip i, and says where they lie; `read(i)` is called when they have been read. False
  /// if something had not come, after some looks: then its own words wait in this rank's slab.
  template <class Own, class Read>
  [[nodiscard]] __device__ __forceinline__ bool add(const sum_fragment& first, int strips, int step,
                                                    const Own& own, const Read& read) {
    bool all = true;
    ask(first);
#pragma unroll 1
    for (int i = 0; i < strips; ++i) {
      const sum_fragment strip = strip_of(first, i, step);
      const sum_fragment next = strip_of(first, i + 1 < strips ? i + 1 : i, step);
      const auto* const mine = reinterpret_cast<const uint4*>(own(i)) + device_warp::thread_rank();
      if (t_.how.touches(t_.how.rank(), t_.how.row_of(strip), t_.how.fragment_rows())) {
        all = add(strip, mine, next, all ? t_.looks : 1) && all;
      } else {
        ask(next);
      }
      read(i);
    }
    return all;
  }

 private:
  static constexpr int lanes = sum_fragments::lanes;
  static constexpr int words = bytes / (lanes * 16);  ///< of 16 bytes, of a lane
  static constexpr unsigned everybody = 0xffffffffU;

  [[nodiscard]] __device__ static sum_fragment strip_of(sum_fragment first, int i, int step) {
    const int of_subtile = sum_fragments::warps / step;
    first.warp += i % of_subtile * step;
    first.part = i / of_subtile * parts;
    return first;
  }
  [[nodiscard]] __device__ std::int64_t offset_of(const sum_fragment& strip) const {
    return t_.how.slot_of(t_.how.rank(), strip) * t_.how.fragment_bytes();
  }
  [[nodiscard]] __device__ uint4* place(int rank, std::int64_t at) const {
    return reinterpret_cast<uint4*>(slab_of_rank_0_ + rank * t_.slab_bytes + at) +
           device_warp::thread_rank();
  }
  /// For what the first peer has of a strip.
  __device__ void ask(const sum_fragment& strip) {
    ask(t_.how.rank() == 0 ? 1 : 0, offset_of(strip));
  }
  __device__ void ask(int rank, std::int64_t at) {
    const uint4* const from = place(rank, at);
#pragma unroll
    for (int i = 0; i < words; ++i) found_[i] = load_sum_words_if(true, from + i * lanes);
  }
  /// One that was asked for; asks for the next one.
  [[nodiscard]] __device__ __forceinline__ bool add(const sum_fragment& strip, const uint4* mine,
                                                    const sum_fragment& next, int looks) {
    const std::int64_t at = offset_of(strip);
    float2 sums[words][4];
    bool there = false;
    int look = 0;
#pragma unroll 1
    while (!there && look < looks) {
      ++look;
      there = sum_up(at, mine, look < looks ? strip : next, sums);
    }
    if (look < looks) ask(next);
    if (!there) {
#pragma unroll
      for (int i = 0; i < words; ++i)
        store_sum_words(place(t_.how.rank(), at) + i * lanes, mine[i * lanes]);
      return false;
    }
    if (!left_out(mutant::sums_put_back)) put_back(at);
    store(strip, sums);
    return true;
  }
  /// What all ranks have of a strip; asks for the next one. Whether it had come.
  [[nodiscard]] __device__ __forceinline__ bool sum_up(std::int64_t at, const uint4* mine,
                                                       const sum_fragment& next,
                                                       float2 (&sums)[words][4]) {
    const int me = t_.how.rank();
    bool there = true;
#pragma unroll 1
    for (int rank = 0; rank < t_.how.world(); ++rank) {
      uint4 here[words];
#pragma unroll
      for (int i = 0; i < words; ++i) here[i] = rank == me ? mine[i * lanes] : found_[i];
      if (rank != me) {
        const int after = rank + 1 == me ? rank + 2 : rank + 1;
        if (after < t_.how.world()) {
          ask(after, at);
        } else {
          ask(next);
        }
      }
#pragma unroll
      for (int i = 0; i < words; ++i) {
        there = there && partial_words<T, false>::have_come(here[i]);
        add_to(sums[i][0], here[i].x, rank == 0);
        add_to(sums[i][1], here[i].y, rank == 0);
        add_to(sums[i][2], here[i].z, rank == 0);
        add_to(sums[i][3], here[i].w, rank == 0);
      }
    }
    return __all_sync(everybody, there ? 1 : 0) != 0;
  }
  __device__ void put_back(std::int64_t at) const {
#pragma unroll 1
    for (int hop = 1; hop < t_.how.world(); ++hop) {
      uint4* const to = place(receiver_at_hop(t_.how.rank(), hop, t_.how.world()), at);
#pragma unroll
      for (int i = 0; i < words; ++i)
        store_sum_words(to + i * lanes, partial_words<T, false>::nothing());
    }
  }
  __device__ static void add_to(float2& sum, std::uint32_t word, bool first) {
    const float2 more = two_floats(~word, T{});
    sum = first ? more : make_float2(sum.x + more.x, sum.y + more.y);
  }

  /// 16 bytes of a lane are words of two lanes of a fragment: two elements each of a row and of the
  /// eighth row below it, twice. Lanes side by side exchange half of theirs, and have a row of the
  /// fragment each.
  __device__ void store(const sum_fragment& strip, const float2 (&sums)[words][4]) const {
    const int lane = device_warp::thread_rank();
    const bool lower = lane % 2 != 0;
    const int row = t_.how.row_of(strip) + lane % 16 / 2 + (lower ? 8 : 0);
    const int col = t_.how.col_of(strip) + lane / 16 * 8;
    const sum_results<T> results(t_, t_.how.first_row(t_.how.rank()),
                                 t_.how.end_row(t_.how.rank()));
#pragma unroll
    for (int i = 0; i < words; ++i) {
      const auto two = [&](int word) { return two_halves(sums[i][word].x, sums[i][word].y, T{}); };
      const std::uint32_t kept_0 = lower ? two(1) : two(0);
      const std::uint32_t kept_1 = lower ? two(3) : two(2);
      const std::uint32_t got_0 = __shfl_xor_sync(everybody, lower ? two(0) : two(1), 1);
      const std::uint32_t got_1 = __shfl_xor_sync(everybody, lower ? two(2) : two(3), 1);
      results.put(row, col + i * 16,
                  lower ? make_uint4(got_0, got_1, kept_0, kept_1)
                        : make_uint4(kept_0, kept_1, got_0, got_1));
    }
  }

  const sums_run& t_;
  std::byte* slab_of_rank_0_;
  uint4 found_[words];  // of the peer whose turn is next
};

}  // namespace untax::gpu
