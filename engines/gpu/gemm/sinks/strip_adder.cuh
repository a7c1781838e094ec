#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>
#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/gemm/sinks/strip_landing.cuh"
#include "engines/gpu/matrix/pairs.cuh"
#include "engines/gpu/sm90/ptx/sum_words.cuh"

namespace untax::gpu {

/// Adds strips of this rank's rows, in the order of the ranks, by all lanes of a warp. A strip is
/// what a warp of an MMA warpgroup has of a sub-tile: 16 rows by 64 columns, as 16-bit partials.
/// Own words lie in shared memory, those of peers in slabs; all have the same form, so a lane takes
/// 16 bytes of each at the same place. Where those of a peer have not come, the own words go to
/// this rank's slab, and are added at the end.
///
/// Beside a GEMM a warp has about as many instructions for a strip as a tile takes to multiply, so
/// what strips of a tile share is found once.
template <class T>
class strip_adder {
 public:
  /// `first`: the fragment with which those of a tile begin.
  __device__ strip_adder(const sums_run& io, std::uint64_t epoch, const sum_fragment& first)
      : t_(io),
        words_(io.moved.run.inbox.local() + io.how.slab_of(0, epoch) * io.slab_bytes +
               io.how.slot_of(io.how.rank(), first) * io.how.fragment_bytes()),
        row_(io.how.row_of(first)),
        out_(place_in_c(row_ + row_of_lane(), io.how.col_of(first) + lane() / 16 * 8)),
        first_row_(io.how.first_row(io.how.rank())),
        end_row_(io.how.end_row(io.how.rank())) {}

  /// An MMA warp, one after the other: its own of all sub-tiles, the words of which lie `apart`
  /// bytes apart. Peers' words go to registers, those of the next strip while one is added, and are
  /// looked for several times. False if something is left.
  [[nodiscard]] __device__ __forceinline__ bool add_at_end(int subtiles, const std::byte* own,
                                                           int apart) {
    bool all = true;
    if (!is_own(0)) return true;
    ask(first_peer(), {});
#pragma unroll 1
    for (int subtile = 0; subtile < subtiles; ++subtile) {
      const strip at{0, subtile};
      const strip next{0, subtile + 1 < subtiles ? subtile + 1 : subtile};
      const auto* const mine = reinterpret_cast<const uint4*>(own + subtile * apart) + lane();
      const int looks = all ? t_.looks : 1;
      bool there = false;
#pragma unroll 1
      for (int look = 1; look <= looks && !there; ++look) {
        there = true;
#pragma unroll 1
        for (int rank = 0; rank < t_.how.world(); ++rank) {
          words here;
          if (rank == t_.how.rank()) {
            here.copy(mine);
          } else {
            here = asked_;
            const int after = peer_after(rank);
            if (after < t_.how.world()) {
              ask(after, at);
            } else {
              ask(first_peer(), look < looks ? at : next);
            }
          }
          there = take(here, rank == 0) && there;
        }
        there = __all_sync(everybody, there ? 1 : 0) != 0;
        // What was asked for again is not wanted.
        if (there && look < looks) ask(first_peer(), next);
      }
      all = hand_on(at, mine, there) && all;
    }
    return all;
  }

  /// An epilogue warp: those of all warps of a group, sub-tile by sub-tile. `own(i)` waits for the
  /// own words of strip i, and says where they lie; `read(i)` is called when they have been read.
  /// Peers' words pass through `landing`. False if something is left.
  template <class Own, class Read>
  [[nodiscard]] __device__ __forceinline__ bool add_beside(int subtiles,
                                                           strip_landing::view& landing,
                                                           const Own& own, const Read& read) {
    const int strips = subtiles * sum_fragments::warps;
    int asked = 0;  // the strip and the peer that are asked for next
    int peer = first_peer();
    const auto ask_next = [&] {
      if (asked == strips) return;
      landing.ask(place(peer, strip_number(asked)));
      peer = peer_after(peer);
      if (peer < t_.how.world()) return;
      peer = first_peer();
      ++asked;
    };
    for (int i = 0; i < strip_landing::slots; ++i) ask_next();
    bool all = true;
#pragma unroll 1
    for (int i = 0; i < strips; ++i) {
      const auto* const mine = reinterpret_cast<const uint4*>(own(i)) + lane();
      bool there = true;
#pragma unroll 1
      for (int rank = 0; rank < t_.how.world(); ++rank) {
        words here;
        if (rank == t_.how.rank()) {
          here.copy(mine);
        } else {
          here.copy(landing.await() + lane());
          __syncwarp();
          landing.advance();
          ask_next();
        }
        there = take(here, rank == 0) && there;
      }
      const strip at = strip_number(i);
      if (is_own(at.warp))
        all = hand_on(at, mine, __all_sync(everybody, there ? 1 : 0) != 0) && all;
      read(i);
    }
    return all;
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;
  static constexpr int each = strip_bytes / (sum_fragments::lanes * 16);

  /// Counted from the first fragment.
  struct strip {
    int warp = 0;
    int subtile = 0;
  };
  /// What a lane has of a strip.
  struct words {
    uint4 of[each];

    __device__ void copy(const uint4* from) {
#pragma unroll
      for (int i = 0; i < each; ++i) of[i] = from[i * sum_fragments::lanes];
    }
  };

  [[nodiscard]] __device__ static int lane() { return device_warp::thread_rank(); }
  [[nodiscard]] __device__ static int row_of_lane() { return lane() % 16 / 2 + lane() % 2 * 8; }
  [[nodiscard]] __device__ static strip strip_number(int i) {
    return {i % sum_fragments::warps, i / sum_fragments::warps};
  }
  [[nodiscard]] __device__ int first_peer() const { return t_.how.rank() == 0 ? 1 : 0; }
  [[nodiscard]] __device__ int peer_after(int rank) const {
    return rank + 1 == t_.how.rank() ? rank + 2 : rank + 1;
  }
  /// Whether a warp has rows of this rank. For the others nothing comes.
  [[nodiscard]] __device__ bool is_own(int warp) const {
    return sum_fragments::meet(first_row_, end_row_, row_ + warp * 16, 16);
  }
  /// Where the words of a rank begin.
  [[nodiscard]] __device__ uint4* place(int rank, const strip& of) const {
    const int fragments = of.warp * t_.how.parts + of.subtile * strip_parts;
    return reinterpret_cast<uint4*>(words_ + rank * t_.slab_bytes +
                                    fragments * (strip_bytes / strip_parts));
  }
  __device__ void ask(int rank, const strip& of) {
    const uint4* const from = place(rank, of) + lane();
#pragma unroll
    for (int i = 0; i < each; ++i)
      asked_.of[i] = load_sum_words_if(true, from + i * sum_fragments::lanes);
  }

  /// Adds what a rank has. Whether it had come.
  [[nodiscard]] __device__ __forceinline__ bool take(const words& here, bool first) {
    bool there = true;
#pragma unroll
    for (int i = 0; i < each; ++i) there = there && partial_words<T, false>::have_come(here.of[i]);
    if (first) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        sums_[i][0] = two_floats(~here.of[i].x, T{});
        sums_[i][1] = two_floats(~here.of[i].y, T{});
        sums_[i][2] = two_floats(~here.of[i].z, T{});
        sums_[i][3] = two_floats(~here.of[i].w, T{});
      }
    } else {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        add_to(sums_[i][0], here.of[i].x);
        add_to(sums_[i][1], here.of[i].y);
        add_to(sums_[i][2], here.of[i].z);
        add_to(sums_[i][3], here.of[i].w);
      }
    }
    return there;
  }
  __device__ static void add_to(float2& sum, std::uint32_t word) {
    const float2 more = two_floats(~word, T{});
    sum.x += more.x;
    sum.y += more.y;
  }

  /// The sums to C, or, where something has not come, the own words to this rank's slab.
  [[nodiscard]] __device__ __forceinline__ bool hand_on(const strip& of, const uint4* mine,
                                                        bool there) {
    if (!there) {
      uint4* const to = place(t_.how.rank(), of) + lane();
#pragma unroll
      for (int i = 0; i < each; ++i)
        store_sum_words(to + i * sum_fragments::lanes, mine[i * sum_fragments::lanes]);
      return false;
    }
    if (!left_out(mutant::sums_put_back)) {
#pragma unroll 1
      for (int peer = first_peer(); peer < t_.how.world(); peer = peer_after(peer)) {
        uint4* const to = place(peer, of) + lane();
#pragma unroll
        for (int i = 0; i < each; ++i)
          store_sum_words(to + i * sum_fragments::lanes, partial_words<T, false>::nothing());
      }
    }
    store(of);
    return true;
  }

  /// Of this rank, or of all, whichever it is.
  [[nodiscard]] __device__ std::byte* place_in_c(int row, int col) const {
    const std::int64_t in_c = row - (t_.how.passes_on ? 0 : t_.how.first_row(t_.how.rank()));
    return t_.moved.run.out + (in_c * t_.moved.c_stride + col) * 2;
  }
  /// 16 bytes of a lane are words of two lanes of a fragment: two elements each of a row and of the
  /// eighth row below it, twice. Lanes side by side exchange half of theirs, and have a row of the
  /// fragment each.
  __device__ __forceinline__ void store(const strip& of) const {
    const bool lower = lane() % 2 != 0;
    uint4 rows[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const auto two = [&](int word) {
        return two_halves(sums_[i][word].x, sums_[i][word].y, T{});
      };
      const std::uint32_t upper_0 = two(0);
      const std::uint32_t lower_0 = two(1);
      const std::uint32_t upper_1 = two(2);
      const std::uint32_t lower_1 = two(3);
      const std::uint32_t got_0 = __shfl_xor_sync(everybody, lower ? upper_0 : lower_0, 1);
      const std::uint32_t got_1 = __shfl_xor_sync(everybody, lower ? upper_1 : lower_1, 1);
      rows[i] = lower ? make_uint4(got_0, got_1, lower_0, lower_1)
                      : make_uint4(upper_0, upper_1, got_0, got_1);
    }
    const int row = row_ + of.warp * 16 + row_of_lane();
    if (row < first_row_ || row >= end_row_) return;
    std::byte* const to = out_ + (of.warp * 16 * t_.moved.c_stride + of.subtile * subtile_side) * 2;
    put(to, rows);
    if (!t_.how.passes_on) return;
#pragma unroll 1
    for (int hop = 1; hop < t_.how.world(); ++hop) {
      const int peer = receiver_at_hop(t_.how.rank(), hop, t_.how.world());
      put(to + (peer - t_.how.rank()) * t_.moved.run.between, rows);
    }
  }
  __device__ static void put(std::byte* to, const uint4 (&rows)[each]) {
#pragma unroll
    for (int i = 0; i < each; ++i) *reinterpret_cast<uint4*>(to + i * 32) = rows[i];
  }

  const sums_run& t_;
  std::byte* words_;  // of rank 0 that belong to the first fragment
  int row_;
  std::byte* out_;  // of this lane
  int first_row_;
  int end_row_;
  float2 sums_[each][4];
  words asked_;  // of the peer whose turn is next
};

}  // namespace untax::gpu
