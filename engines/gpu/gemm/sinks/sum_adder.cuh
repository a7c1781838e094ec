#pragma once

#include <cstdint>

#include <cuda/atomic>

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/lazy_watch.cuh"
#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/sm90/ptx/matrix_transpose.cuh"

namespace untax::gpu {

/// What a lane waits for: its words of one fragment from several ranks, eight at most. They are
/// asked for all at once before the first one is looked at. Data are taken from the very loads that
/// found them, so that nothing else has to be ordered.
template <class Words>
struct fragment_words {
  static constexpr int most = 8;

  using words = typename Words::words;

  words* first = nullptr;  ///< of the first rank
  std::int64_t apart = 0;  ///< words from a rank to the next
  int count = 0;
  words found[most];

  std::uint64_t expected = 0;  ///< the epoch
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  int first_rank = 0;

  __device__ void ask() {
#pragma unroll
    for (int i = 0; i < most; ++i) found[i] = load_sum_words_if(i < count, first + i * apart);
  }
  [[nodiscard]] __device__ bool have_come() {
    bool came = true;
#pragma unroll
    for (int i = most - 1; i >= 0; --i) {
      if (Words::have_come(found[i])) continue;
      came = false;
      peer = first_rank + i;
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
    for (int i = 0; i < most; ++i) {
      if (i < count) store_sum_words(first + i * apart, Words::nothing());
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
    if (added) finish();
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  template <class T>
  [[nodiscard]] __device__ bool of_type() const {
    return t_.how.halves ? add_all<T, partial_words<T, true>>()
                         : add_all<T, partial_words<T, false>>();
  }

  template <class T, class Words>
  [[nodiscard]] __device__ bool add_all() const {
    const sum_fragments& how = t_.how;
    const int count = how.fragments_of(how.rank());
#pragma unroll 1
    for (int i = me_; i < count; i += t_.adding_warps) {
      const sum_fragment f = how.fragment_of(how.rank(), i);
      if (!how.wanted(how.rank(), f)) continue;
      float4 sums;
      if (!add<Words>(f, sums)) return false;
      store<T>(f, sums);
    }
    return true;
  }

  /// (partial of rank 0 + partial of rank 1) + ...
  template <class Words>
  [[nodiscard]] __device__ bool add(const sum_fragment& f, float4& sums) const {
    using part = fragment_words<Words>;
    const sum_fragments& how = t_.how;
    auto* const inbox = reinterpret_cast<typename Words::words*>(t_.moved.run.inbox.local());
    part ranks;
    ranks.apart = t_.slab_bytes / static_cast<std::int64_t>(sizeof(typename Words::words));
    ranks.expected = epoch_;
    ranks.seen = epoch_ > 2 ? epoch_ - 2 : 0;
    for (int rank = 0; rank < how.world(); rank += part::most) {
      const int left = how.world() - rank;
      ranks.count = left < part::most ? left : part::most;
      ranks.first_rank = rank;
      ranks.room = how.slab_of(rank, epoch_);
      ranks.first = inbox + ranks.room * ranks.apart +
                    how.slot_of(how.rank(), f) * sum_fragments::lanes + device_warp::thread_rank();
      if (!await(ranks)) return false;
      if (!left_out(mutant::sums_put_back)) ranks.put_back();
#pragma unroll
      for (int i = 0; i < part::most; ++i) {
        if (i >= ranks.count) break;
        const float4 more = Words::sums_of(ranks.found[i]);
        if (rank + i == 0) {
          sums = more;
        } else {
          add_to(sums, more);
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

  /// The last warp to have added all it adds says so to all ranks; and, where owners write into
  /// everybody's C, waits until they have.
  __device__ void finish() const {
    __syncwarp();
    bool last = false;
    if (device_warp::thread_rank() == 0) {
      const std::uint64_t before =
          cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(*t_.done).fetch_add(
              1, cuda::memory_order_acq_rel);
      last = before + 1 == epoch_ * static_cast<std::uint64_t>(t_.adding_warps);
    }
    const bool closes = __any_sync(everybody, last) != 0;
    __syncwarp();  // a vote orders no memory
    if (!closes) return;
    const sum_fragments& how = t_.how;
    const warp_channel channel(t_.moved.run, slot_);
    const auto source = [&](int i) { return source_at_hop(how.rank(), i + 1, how.world()); };
    if (!left_out(mutant::sums_retire))
      channel.retire(how.world() - 1,
                     [&](int i) { return how.slab(source(i), how.rank(), epoch_); });
    if (!how.passes_on) return;
    channel.publish(how.world() - 1, [&](int i) {
      return how.landed(how.rank(), receiver_at_hop(how.rank(), i + 1, how.world()), epoch_);
    });
    // The host reports a failed wait.
    (void)channel.acquire(how.world() - 1,
                          [&](int i) { return how.landed(source(i), how.rank(), epoch_); });
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
