#pragma once

#include <untax/rma/device_group.cuh>
#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/gemm/sinks/slab_words.cuh"
#include "engines/gpu/gemm/sinks/sum_results.cuh"

namespace untax::gpu {

/// A warp that adds fragments of this rank, in the order of the ranks.
class sum_adder {
 public:
  /// `slot` names the warp's wait record.
  __device__ sum_adder(const sums_run& io, std::uint64_t epoch, int slot)
      : t_(io),
        epoch_(epoch),
        slot_(slot),
        first_row_(io.how.first_row(io.how.rank())),
        end_row_(io.how.end_row(io.how.rank())) {}

  /// Whether a fragment has some of this rank's rows, and columns that there are.
  [[nodiscard]] __device__ bool wanted(const sum_fragment& f) const {
    const int row = t_.how.row_of(f);
    return row < end_row_ && row + t_.how.fragment_rows() > first_row_ &&
           t_.how.col_of(f) < t_.how.n;
  }

  /// Some fragments side by side that this rank wants of, from `first` on: a bit for each.
  template <int together>
  [[nodiscard]] __device__ unsigned wanted_of(const sum_fragment& first) const {
    unsigned all = 0;
#pragma unroll
    for (int part = 0; part < together; ++part)
      if (first.part + part < t_.how.parts && wanted(beside(first, part))) all |= 1U << part;
    return all;
  }

  /// Adds these up, into C: (partial of rank 0 + partial of rank 1) + ... False after a wait that
  /// ended badly.
  template <class T, class Words, int ranks, int together>
  [[nodiscard]] __device__ bool add(const sum_fragment& first, unsigned wanted) const {
    const sum_fragments& how = t_.how;
    slab_place<Words> at;
    at.apart = t_.slab_bytes / static_cast<std::int64_t>(sizeof(typename Words::words));
    at.wanted = wanted;
    at.epoch = epoch_;
    at.room = how.slab_of(0, epoch_);
    at.first = reinterpret_cast<typename Words::words*>(t_.moved.run.inbox.local()) +
               at.room * at.apart + how.slot_of(how.rank(), first) * sum_fragments::lanes +
               device_warp::thread_rank();
    float4 sums[together];
    for (at.begin = 0; at.begin < how.world(); at.begin += ranks) {
      at.count = min(how.world() - at.begin, ranks);
      slab_words<Words, ranks, together> words(at);
      if (!words.await(t_.moved.run, slot_)) return false;
      if (!left_out(mutant::sums_put_back)) words.put_back();
#pragma unroll
      for (int i = 0; i < ranks; ++i) {
        if (i >= at.count) break;
#pragma unroll
        for (int part = 0; part < together; ++part)
          add_to(sums[part], Words::sums_of(words.found[i][part]), at.begin + i == 0);
      }
    }
    sum_results<T>(t_, first_row_, end_row_).template store<together>(first, wanted, sums);
    return true;
  }

  /// Number `me` of `io.adding_warps` adds its share of what comes for this rank. By all lanes;
  /// false after a wait that ended badly.
  [[nodiscard]] __device__ bool add_share(int me) const {
    if (t_.type == dtype::f16) return share_of<__half>(me);
    return share_of<__nv_bfloat16>(me);
  }

 private:
  /// Fragments that a warp adds before it looks for others, at most.
  static constexpr int in_row = 8;

  [[nodiscard]] __device__ static sum_fragment beside(sum_fragment f, int parts) {
    f.part += parts;
    return f;
  }
  __device__ static void add_to(float4& sums, const float4& more, bool first) {
    sums = first ? more
                 : make_float4(sums.x + more.x, sums.y + more.y, sums.z + more.z, sums.w + more.w);
  }

  template <class T>
  [[nodiscard]] __device__ bool share_of(int me) const {
    return t_.how.halves ? share_of<T, partial_words<T, true>>(me)
                         : share_of<T, partial_words<T, false>>(me);
  }
  template <class T, class Words>
  [[nodiscard]] __device__ bool share_of(int me) const {
    constexpr int together = 4;
    const sum_fragments& how = t_.how;
    const int row = min(how.parts, in_row);
    const int count = how.fragments_of(how.rank());
#pragma unroll 1
    for (int i = me * row; i < count; i += t_.adding_warps * row) {
      sum_fragment f = how.fragment_of(how.rank(), i);
      const int end = f.part + row;
#pragma unroll 1
      for (; end > f.part; f.part += together) {
        const unsigned wanted = wanted_of<together>(f);
        if (wanted == 0) continue;
        if (!add<T, Words, 2, together>(f, wanted)) return false;
      }
    }
    return true;
  }

  const sums_run& t_;
  std::uint64_t epoch_;
  int slot_;
  int first_row_;
  int end_row_;
};

/// Number `me` of the warps that add does so. Once in a kernel: inlined in two roles that have
/// different numbers of registers, its copies would be made one, which has none of both.
static __device__ __noinline__ void add_sums(const sums_run& io, int me, std::uint64_t epoch,
                                             int slot) {
  // After a wait that ended badly, which the host reports, nobody is told anything.
  if (sum_adder(io, epoch, slot).add_share(me))
    end_slabs(io.moved.run, io.how, *io.done, io.adding_warps, epoch, slot);
}

}  // namespace untax::gpu
