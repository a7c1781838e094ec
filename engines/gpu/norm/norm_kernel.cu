#include <cuda_fp8.h>

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/gemm/sinks/slab_words.cuh"
#include "engines/gpu/norm/norm_rows.hpp"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/trace/block_run.cuh"

namespace untax::gpu {

namespace {

constexpr int warps = norm_threads / 32;
constexpr int most_chunks = most_normed / norm_rows::elements / norm_threads;  // of a thread
constexpr unsigned everybody = 0xffffffffU;

/// Eight elements, in pairs.
template <class T>
struct eight {
  float v[norm_rows::elements];

  __device__ static eight of(const uint4& pairs) {
    eight e;
    e.put(0, pairs.x);
    e.put(1, pairs.y);
    e.put(2, pairs.z);
    e.put(3, pairs.w);
    return e;
  }
  [[nodiscard]] __device__ uint4 pairs() const {
    return make_uint4(pair(0), pair(1), pair(2), pair(3));
  }
  __device__ void add(const eight& more) {
#pragma unroll
    for (int i = 0; i < norm_rows::elements; ++i) v[i] += more.v[i];
  }

 private:
  __device__ void put(int i, std::uint32_t bits) {
    const float2 two = two_floats(bits, T{});
    v[2 * i] = two.x;
    v[2 * i + 1] = two.y;
  }
  [[nodiscard]] __device__ std::uint32_t pair(int i) const {
    return two_halves(v[2 * i], v[2 * i + 1], T{});
  }
};

/// A block: sends its rows, then adds and normalises others.
template <class T>
class norm_block {
 public:
  __device__ norm_block(const norm_arguments& given, float* shared, std::uint64_t epoch)
      : t_(given),
        how_(given.how),
        shared_(shared),
        epoch_(epoch),
        slot_(static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / 32) {}

  __device__ void run() {
    const bool speaks = threadIdx.x < 32;
    // After a wait that ended badly, which the host reports, nobody is told anything.
    if (__syncthreads_and(speaks ? reserve_slabs(t_.run, how_, epoch_, slot_) : 1) == 0) return;
    send();
    bool added = true;
    for (int row = how_.first_row(how_.own_rank) + static_cast<int>(blockIdx.x);
         row < how_.end_row(how_.own_rank) && added; row += static_cast<int>(gridDim.x))
      added = take(row);
    if (__syncthreads_and(added ? 1 : 0) != 0 && speaks)
      end_slabs(t_.run, how_, *t_.done, static_cast<int>(gridDim.x), epoch_, slot_);
  }

 private:
  /// Rows of the own input to who adds them, the next rank's first.
  __device__ void send() const {
    const action_note noted(t_.run, action::copy);
    if (!how_.passes_on) {
      for (int row = static_cast<int>(blockIdx.x); row < how_.tokens;
           row += static_cast<int>(gridDim.x))
        send_row(row, 1, how_.ranks - 1);
      return;
    }
    for (int hop = 1; hop < how_.ranks; ++hop) {
      const int owner = receiver_at_hop(how_.own_rank, hop, how_.ranks);
      for (int row = how_.first_row(owner) + static_cast<int>(blockIdx.x);
           row < how_.end_row(owner); row += static_cast<int>(gridDim.x))
        send_row(row, hop, 1);
    }
  }
  __device__ void send_row(int row, int first_hop, int hops) const {
    const uint4* const from = row_of(t_.run.in, row);
    for (int i = static_cast<int>(threadIdx.x); i < how_.chunks(); i += norm_threads) {
      const uint4 words = as_words(from[i]);
      for (int hop = first_hop; hop < first_hop + hops; ++hop) {
        const int owner = receiver_at_hop(how_.own_rank, hop, how_.ranks);
        store_sum_words(slab_row(owner, how_.own_rank, row) + i, words);
      }
    }
  }

  /// A row, from all ranks. False after a wait that ended badly.
  [[nodiscard]] __device__ bool take(int row) {
    const action_note noted(t_.run, action::normalise);
    uint4 x[most_chunks];
    float squares = 0;
    bool going = true;
#pragma unroll
    for (int k = 0; k < most_chunks; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * norm_threads;
      const bool mine = i < how_.chunks();
      x[k] = make_uint4(0, 0, 0, 0);
      if (__any_sync(everybody, mine ? 1 : 0) == 0) continue;
      eight<T> sums;
      going = going && add(row, i, mine, sums);
      if (!mine || !going) continue;
      sums.add(eight<T>::of(row_of(t_.residual, row)[i]));
      x[k] = sums.pairs();
      each_copy(t_.x, [&](void* to) { row_of(to, row)[i] = x[k]; });
      const eight<T> rounded = eight<T>::of(x[k]);
#pragma unroll
      for (const float v : rounded.v) squares += v * v;
    }
    if (__syncthreads_and(going ? 1 : 0) == 0) return false;
    const float mean = over_block(squares, [](float a, float b) { return a + b; }) /
                       static_cast<float>(how_.hidden);
    normalise(row, x, 1.0F / sqrtf(mean + t_.epsilon));
    return true;
  }

  /// (row of rank 0 + row of rank 1) + ..., of eight elements a lane. By all lanes of a warp.
  [[nodiscard]] __device__ bool add(int row, int i, bool mine, eight<T>& sums) const {
    constexpr int together = 8;  // ranks
    const int others = how_.ranks - 1;
    // What all ranks add is the same, also of NaN.
    const auto own = eight<T>::of(
        from_words(as_words(mine ? row_of(t_.run.in, row)[i] : make_uint4(0, 0, 0, 0))));
    const auto add_more = [&](const eight<T>& more, int rank) {
      if (rank == 0) {
        sums = more;
      } else {
        sums.add(more);
      }
    };
    slab_place<partial_words<T, false>> at;
    at.first = slab_row(how_.own_rank, 0, row) + i;
    at.apart = how_.in_slab() / norm_rows::elements;
    at.skipped = how_.own_rank;
    at.epoch = epoch_;
    at.room = how_.slab_of(0, epoch_);
    for (at.begin = 0; at.begin < others; at.begin += together) {
      at.count = mine ? min(others - at.begin, together) : 0;
      slab_words<partial_words<T, false>, together> words(at);
      if (!words.await(t_.run, slot_)) return false;
      if (!left_out(mutant::sums_put_back)) words.put_back();
#pragma unroll
      for (int k = 0; k < together; ++k) {
        if (k >= at.count) break;
        if (at.begin + k == how_.own_rank) add_more(own, how_.own_rank);
        add_more(eight<T>::of(from_words(words.found[k][0])), at.rank_of(k));
      }
    }
    if (how_.own_rank == others) add_more(own, how_.own_rank);
    return true;
  }

  __device__ void normalise(int row, const uint4 (&x)[most_chunks], float inverse) {
    float scale = t_.scale;
    if (t_.output == norm_output::e4m3_per_token) {
      float largest = 0;
#pragma unroll
      for (int k = 0; k < most_chunks; ++k) {
        const int i = static_cast<int>(threadIdx.x) + k * norm_threads;
        if (i >= how_.chunks()) break;
        const eight<T> normed = normed_at(x[k], i, inverse);
#pragma unroll
        for (const float v : normed.v) largest = fmaxf(largest, fabsf(v));
      }
      largest = over_block(largest, [](float a, float b) { return fmaxf(a, b); });
      scale = largest > 0 ? largest / 448.0F : 1.0F;
      if (threadIdx.x == 0)
        each_copy(t_.scales, [&](void* to) { static_cast<float*>(to)[row] = scale; });
    }
#pragma unroll
    for (int k = 0; k < most_chunks; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * norm_threads;
      if (i >= how_.chunks()) break;
      const eight<T> normed = normed_at(x[k], i, inverse);
      if (t_.output == norm_output::same) {
        const uint4 pairs = normed.pairs();
        each_copy(t_.out, [&](void* to) { row_of(to, row)[i] = pairs; });
      } else {
        const uint2 bytes = narrowed(normed, scale);
        each_copy(t_.out, [&](void* to) {
          static_cast<uint2*>(to)[std::int64_t{row} * how_.chunks() + i] = bytes;
        });
      }
    }
  }
  [[nodiscard]] __device__ eight<T> normed_at(const uint4& x, int i, float inverse) const {
    eight<T> values = eight<T>::of(x);
    const eight<T> weight = eight<T>::of(static_cast<const uint4*>(t_.weight)[i]);
#pragma unroll
    for (int j = 0; j < norm_rows::elements; ++j) values.v[j] = values.v[j] * inverse * weight.v[j];
    return values;
  }
  [[nodiscard]] __device__ static uint2 narrowed(const eight<T>& values, float scale) {
    std::uint32_t bytes[2] = {};
#pragma unroll
    for (int j = 0; j < norm_rows::elements; ++j) {
      const std::uint32_t byte =
          __nv_cvt_float_to_fp8(values.v[j] / scale, __NV_SATFINITE, __NV_E4M3);
      bytes[j / 4] |= byte << (8 * (j % 4));
    }
    return make_uint2(bytes[0], bytes[1]);
  }

  /// The same at all threads; in an order that the number of elements alone decides.
  template <class Combine>
  [[nodiscard]] __device__ float over_block(float mine, const Combine& combine) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      mine = combine(mine, __shfl_xor_sync(everybody, mine, step));
    if (threadIdx.x % 32 == 0) shared_[threadIdx.x / 32] = mine;
    __syncthreads();
    float all = shared_[0];
#pragma unroll
    for (int warp = 1; warp < warps; ++warp) all = combine(all, shared_[warp]);
    __syncthreads();
    return all;
  }

  [[nodiscard]] __device__ const uint4* row_of(const void* matrix, int row) const {
    return static_cast<const uint4*>(matrix) + std::int64_t{row} * how_.chunks();
  }
  [[nodiscard]] __device__ uint4* row_of(void* matrix, int row) const {
    return static_cast<uint4*>(matrix) + std::int64_t{row} * how_.chunks();
  }
  [[nodiscard]] __device__ uint4* slab_row(int owner, int source, int row) const {
    return reinterpret_cast<uint4*>(t_.run.inbox.at(owner) +
                                    2 * how_.place_of(source, owner, row, epoch_));
  }
  /// `write(to)` for the own result, or that of all ranks, this one's first.
  template <class Write>
  __device__ void each_copy(void* own, const Write& write) const {
    write(own);
    if (!how_.passes_on) return;
    for (int hop = 1; hop < how_.ranks; ++hop) {
      const int peer = receiver_at_hop(how_.own_rank, hop, how_.ranks);
      write(static_cast<std::byte*>(own) + (peer - how_.own_rank) * t_.run.between);
    }
  }

  const norm_arguments& t_;
  const norm_rows& how_;
  float* shared_;
  std::uint64_t epoch_;
  int slot_;
};

template <class T>
__global__ void __launch_bounds__(norm_threads)
    all_reduce_norm_kernel(const __grid_constant__ norm_arguments given) {
  __shared__ float shared[warps];
  if (given.run.launch < 0) return;
  griddepcontrol_wait();
  griddepcontrol_launch_dependents();
  const block_run run(given.run, given.run.epochs[blockIdx.x], warp_role::worker);
  norm_block<T>(given, shared, run.epoch()).run();
  __syncthreads();
  run.end();
}

}  // namespace

const void* norm_kernel(dtype type) {
  return type == dtype::f16 ? reinterpret_cast<const void*>(all_reduce_norm_kernel<__half>)
                            : reinterpret_cast<const void*>(all_reduce_norm_kernel<__nv_bfloat16>);
}

}  // namespace untax::gpu
