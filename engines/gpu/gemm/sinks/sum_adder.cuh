#pragma once

#include <cstdint>

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/lazy_watch.cuh"
#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/sm90/ptx/matrix_transpose.cuh"

namespace untax::gpu {

/// What a lane waits for: its words of `together` fragments side by side from several ranks. They
/// are asked for all at once before the first one is looked at. Data are taken from the very loads
/// that found them, so that nothing else has to be ordered.
template <class Words, int together>
struct fragment_words {
  static constexpr int ranks =
      8 / together;  ///< at most; more registers would spill those of the GEMM

  using words = typename Words::words;

  words* first = nullptr;  ///< of the first rank
  std::int64_t apart = 0;  ///< words from a rank to the next
  int count = 0;           ///< of ranks
  unsigned wanted = 0;     ///< a bit for each fragment
  words found[ranks][together];

  std::uint64_t expected = 0;  ///< the epoch
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  int first_rank = 0;

  [[nodiscard]] __device__ bool asks(int rank, int part) const {
    return rank < count && (wanted >> part & 1U) != 0;
  }
  [[nodiscard]] __device__ words* at(int rank, int part) const {
    return first + rank * apart + part * sum_fragments::lanes;
  }
  __device__ void ask() {
#pragma unroll
    for (int rank = 0; rank < ranks; ++rank) {
#pragma unroll
      for (int part = 0; part < together; ++part)
        found[rank][part] = load_sum_words_if(asks(rank, part), at(rank, part));
    }
  }
  [[nodiscard]] __device__ bool have_come() {
    bool came = true;
#pragma unroll
    for (int rank = ranks - 1; rank >= 0; --rank) {
#pragma unroll
      for (int part = 0; part < together; ++part) {
        if (Words::have_come(found[rank][part])) continue;
        came = false;
        peer = first_rank + rank;
      }
    }
    return came;
  }
  [[nodiscard]] __device__ std::uint64_t look() {
    ask();
    return have_come() ? 1 : 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
  /// For the epoch after the next.
  __device__ void put_back() const {
#pragma unroll
    for (int rank = 0; rank < ranks; ++rank) {
#pragma unroll
      for (int part = 0; part < together; ++part) {
        if (asks(rank, part)) store_sum_words(at(rank, part), Words::nothing());
      }
    }
  }
};

/// A warp that adds what has come for this rank, fragment by fragment, in the order of the ranks.
class sum_adder {
 public:
  /// Number `me` of `io.adding_warps`; `slot` names its wait record. By all lanes.
  __device__ sum_adder(const sums_run& io, int me, std::uint64_t epoch, int slot)
      : t_(io), me_(me), epoch_(epoch), slot_(slot) {}

  __device__ void run() const {
    const bool added = t_.type == dtype::f16 ? of_type<__half>() : of_type<__nv_bfloat16>();
    // After a wait that ended badly, which the host reports, nobody is told anything.
    if (added) end_slabs(t_.moved.run, t_.how, *t_.done, t_.adding_warps, epoch_, slot_);
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  template <class T>
  [[nodiscard]] __device__ bool of_type() const {
    return t_.how.halves ? of_words<T, partial_words<T, true>>()
                         : of_words<T, partial_words<T, false>>();
  }
  /// Of few ranks more fragments are on their way at the same time.
  template <class T, class Words>
  [[nodiscard]] __device__ bool of_words() const {
    return t_.how.world() <= 2 && t_.how.parts % 4 == 0 ? add_all<T, Words, 4>()
                                                        : add_all<T, Words, 2>();
  }

  template <class T, class Words, int together>
  [[nodiscard]] __device__ bool add_all() const {
    const sum_fragments& how = t_.how;
    const int count = how.fragments_of(how.rank());
#pragma unroll 1
    for (int i = me_ * together; i < count; i += t_.adding_warps * together) {
      const sum_fragment first = how.fragment_of(how.rank(), i);
      unsigned wanted = 0;
#pragma unroll
      for (int part = 0; part < together; ++part)
        if (how.wanted(how.rank(), beside(first, part))) wanted |= 1U << part;
      if (wanted == 0) continue;
      float4 sums[together];
      if (!add<Words, together>(first, wanted, sums)) return false;
#pragma unroll
      for (int part = 0; part < together; ++part)
        if ((wanted >> part & 1U) != 0) store<T>(beside(first, part), sums[part]);
    }
    return true;
  }
  [[nodiscard]] __device__ static sum_fragment beside(sum_fragment f, int parts) {
    f.part += parts;
    return f;
  }

  /// (partial of rank 0 + partial of rank 1) + ...
  template <class Words, int together>
  [[nodiscard]] __device__ bool add(const sum_fragment& f, unsigned wanted,
                                    float4 (&sums)[together]) const {
    using part_words = fragment_words<Words, together>;
    const sum_fragments& how = t_.how;
    auto* const inbox = reinterpret_cast<typename Words::words*>(t_.moved.run.inbox.local());
    part_words mine;
    mine.apart = t_.slab_bytes / static_cast<std::int64_t>(sizeof(typename Words::words));
    mine.wanted = wanted;
    mine.expected = epoch_;
    mine.seen = epoch_ > 2 ? epoch_ - 2 : 0;
    for (int rank = 0; rank < how.world(); rank += part_words::ranks) {
      const int left = how.world() - rank;
      mine.count = left < part_words::ranks ? left : part_words::ranks;
      mine.first_rank = rank;
      mine.room = how.slab_of(rank, epoch_);
      mine.first = inbox + mine.room * mine.apart +
                   how.slot_of(how.rank(), f) * sum_fragments::lanes + device_warp::thread_rank();
      if (!await(mine)) return false;
      if (!left_out(mutant::sums_put_back)) mine.put_back();
#pragma unroll
      for (int i = 0; i < part_words::ranks; ++i) {
        if (i >= mine.count) break;
#pragma unroll
        for (int part = 0; part < together; ++part) {
          const float4 more = Words::sums_of(mine.found[i][part]);
          if (rank + i == 0) {
            sums[part] = more;
          } else {
            add_to(sums[part], more);
          }
        }
      }
    }
    return true;
  }
  __device__ static void add_to(float4& sums, const float4& more) {
    sums.x += more.x;
    sums.y += more.y;
    sums.z += more.z;
    sums.w += more.w;
  }
  template <class Part>
  [[nodiscard]] __device__ bool await(Part& ranks) const {
    ranks.ask();
    if (__any_sync(everybody, ranks.have_come() ? 0 : 1) == 0) return true;
    const run_arguments& run = t_.moved.run;
    lazy_watch watch(device_watch(run.world, slot_));
    return wait_for_parts(ranks, watch, run.operator_name()) == wait_outcome::ok;
  }

  /// Into this rank's C, or that of all: two matrices of 8 x 8 elements, one below the other, or,
  /// with A and B exchanged, side by side.
  template <class T>
  __device__ void store(const sum_fragment& f, const float4& sums) const {
    const sum_fragments& how = t_.how;
    std::uint32_t two[2] = {two_halves(sums.x, sums.y, T{}), two_halves(sums.z, sums.w, T{})};
    if (how.swap_ab) {
      two[0] = transposed(two[0]);
      two[1] = transposed(two[1]);
    }
    const int lane = device_warp::thread_rank();
    const int first = how.first_row(how.rank());
    const int end = how.end_row(how.rank());
    for (int copy = 0; copy < (how.passes_on ? how.world() : 1); ++copy) {
      const int peer = receiver_at_hop(how.rank(), copy, how.world());
      std::byte* const c = t_.moved.run.out + (peer - how.rank()) * t_.moved.run.between;
#pragma unroll
      for (int matrix = 0; matrix < 2; ++matrix) {
        const int row = how.row_of(f) + lane / 4 + (how.swap_ab ? 0 : matrix * 8);
        const int col = how.col_of(f) + lane % 4 * 2 + (how.swap_ab ? matrix * 8 : 0);
        if (row < first || row >= end || col >= how.n) continue;
        const std::int64_t in_c = row - (how.passes_on ? 0 : first);
        reinterpret_cast<std::uint32_t*>(c)[(in_c * t_.moved.c_stride + col) / 2] = two[matrix];
      }
    }
  }

  const sums_run& t_;
  int me_;
  std::uint64_t epoch_;
  int slot_;
};

/// The same, once in a kernel: inlined in two roles that have different numbers of registers, its
/// copies would be made one, which has none of both.
static __device__ __noinline__ void add_sums(const sums_run& io, int me, std::uint64_t epoch,
                                             int slot) {
  sum_adder(io, me, epoch, slot).run();
}

}  // namespace untax::gpu
