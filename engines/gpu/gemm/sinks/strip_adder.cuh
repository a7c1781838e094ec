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
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// Adds strips of this rank's rows, in the order of the ranks, by all lanes of a warp. A strip is
/// what a warp of an MMA warpgroup has of a sub-tile: 16 rows by 64 columns, as 16-bit partials.
/// Own words lie in shared memory, those of peers in slabs; all have the same form, so a lane takes
/// 16 bytes of each at the same place. Where those of a peer have not come, the own words go to
/// this rank's slab, and are added at the end.
///
/// Beside a GEMM a warp has about as many instructions for a strip as a tile takes to multiply, so
/// what strips of a tile share is found once.
template <class T, int parts>
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

  /// An MMA warp: its own, of all sub-tiles, the words of which lie `apart` bytes apart. Peers'
  /// words are looked for several times. False if something is left.
  [[nodiscard]] __device__ __forceinline__ bool add_at_end(int subtiles, const std::byte* own,
                                                           int apart) {
    if (!is_own(0)) return true;
    bool all = true;
#pragma unroll 1
    for (int number = 0; number < subtiles * of_subtile; ++number) {
      const strip at{0, number};
      const std::uint32_t mine = shared_address(own + number / of_subtile * apart) +
                                 number % of_subtile * bytes + lane() * 16;
      const int looks = all ? t_.looks : 1;
      bool there = false;
#pragma unroll 1
      for (int look = 0; look < looks && !there; ++look) {
        there = true;
#pragma unroll 1
        for (int rank = 0; rank < t_.how.world(); ++rank) {
          words here;
          if (rank == t_.how.rank()) {
            here = words_at(mine);
          } else {
            const uint4* const from = place(rank, at) + lane();
#pragma unroll
            for (int i = 0; i < each; ++i)
              here.of[i] = load_sum_words_if(true, from + i * sum_fragments::lanes);
          }
          there = take(here, rank == 0) && there;
        }
        there = __all_sync(everybody, there ? 1 : 0) != 0;
      }
      all = hand_on(at, mine, there) && all;
    }
    return all;
  }

  /// An epilogue warp: those of all warps of a group, in one sub-tile after the other. `own(i)`
  /// waits for the own words of sub-tile i, and says where they lie; `read(i)` is called when they
  /// have been read. Peers' words pass through `landing`. False if something is left.
  template <class Own, class Read>
  [[nodiscard]] __device__ __forceinline__ bool add_beside(int subtiles,
                                                           strip_landing::view& landing,
                                                           const Own& own, const Read& read) {
    static_assert(parts == strip_landing::parts);
    constexpr int each_subtile = sum_fragments::warps * of_subtile;
    const int strips = subtiles * each_subtile;
    int asked = 0;  // the strip and the peer that are asked for next
    int peer = first_peer();
    const auto ask_next = [&] {
      if (asked == strips) return;
      landing.ask([&] { return place(peer, strip_number(asked)); });
      peer = peer_after(peer);
      if (peer < t_.how.world()) return;
      peer = first_peer();
      ++asked;
    };
#pragma unroll 1
    for (int i = 0; i < strip_landing::slots; ++i) ask_next();
    bool all = true;
    std::uint32_t mine = 0;
#pragma unroll 1
    for (int number = 0; number < strips; ++number, mine += bytes) {
      if (number % each_subtile == 0)
        mine = shared_address(own(number / each_subtile)) + lane() * 16;
      bool there = true;
#pragma unroll 1
      for (int rank = 0; rank < t_.how.world(); ++rank) {
        const bool of_peer = rank != t_.how.rank();
        const words here = words_at(of_peer ? landing.await() + lane() * 16 : mine);
        if (of_peer) {
          __syncwarp();
          landing.advance();
          ask_next();
        }
        there = take(here, rank == 0) && there;
      }
      const strip at = strip_number(number);
      if (is_own(at.warp))
        all = hand_on(at, mine, __all_sync(everybody, there ? 1 : 0) != 0) && all;
      if (number % each_subtile == each_subtile - 1) read(number / each_subtile);
    }
    return all;
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;
  static constexpr int bytes = bytes_of_halves(parts);
  static constexpr int each = bytes / (sum_fragments::lanes * 16);
  static constexpr int of_subtile = subtile_side / 8 / parts;  ///< strips of a warp in a sub-tile

  /// Counted from the first fragment.
  struct strip {
    int warp = 0;
    int number = 0;  ///< along the columns
  };
  /// What a lane has of a strip.
  struct words {
    uint4 of[each];
  };
  [[nodiscard]] __device__ static words words_at(std::uint32_t shared) {
    words all;
#pragma unroll
    for (int i = 0; i < each; ++i) all.of[i] = load_shared(shared + i * sum_fragments::lanes * 16);
    return all;
  }

  [[nodiscard]] __device__ static int lane() { return device_warp::thread_rank(); }
  [[nodiscard]] __device__ static int row_of_lane() { return lane() % 16 / 2 + lane() % 2 * 8; }
  /// In the order of the words: sub-tile by sub-tile, and those of a warp side by side.
  [[nodiscard]] __device__ static strip strip_number(int i) {
    return {i / of_subtile % sum_fragments::warps,
            i / (of_subtile * sum_fragments::warps) * of_subtile + i % of_subtile};
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
    return reinterpret_cast<uint4*>(words_ + rank * t_.slab_bytes +
                                    bytes_of_halves(of.warp * t_.how.parts + of.number * parts));
  }

  /// Adds what a rank has. Whether it had come.
  [[nodiscard]] __device__ __forceinline__ bool take(const words& here, bool first) {
    // The least of numbers without a sign is zero if any of them is: no branches.
    std::uint32_t least = 0xffffffffU;
#pragma unroll
    for (int i = 0; i < each; ++i)
      least = min(least, min(min(here.of[i].x, here.of[i].y), min(here.of[i].z, here.of[i].w)));
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
    return least != 0;
  }
  __device__ static void add_to(float2& sum, std::uint32_t word) {
    const float2 more = two_floats(~word, T{});
    sum.x += more.x;
    sum.y += more.y;
  }

  /// The sums to C, or, where something has not come, the own words to this rank's slab.
  [[nodiscard]] __device__ __forceinline__ bool hand_on(const strip& of, std::uint32_t mine,
                                                        bool there) {
    if (!there) {
      uint4* const to = place(t_.how.rank(), of) + lane();
      const words own = words_at(mine);
#pragma unroll
      for (int i = 0; i < each; ++i) store_sum_words(to + i * sum_fragments::lanes, own.of[i]);
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
    std::byte* const to = out_ + (of.warp * 16 * t_.moved.c_stride + of.number * parts * 8) * 2;
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
};

}  // namespace untax::gpu
