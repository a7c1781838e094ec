#include <cuda_fp8.h>

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/norm/elements.cuh"
#include "engines/gpu/norm/norm_rows.hpp"
#include "engines/gpu/norm/row_numbers.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/trace/block_run.cuh"
#include "engines/gpu/words/partial_words.cuh"
#include "engines/gpu/words/slab_words.cuh"

namespace untax::gpu {

namespace {

constexpr unsigned everybody = 0xffffffffU;

/// A block. It sends its rows, or its part of them, then adds and normalises rows. A thread holds
/// `chunks` times eight elements of a row. The loads of this rank's own part of the first row are
/// issued before everything else, so that all loads overlap.
template <class T, int chunks>
class norm_block {
 public:
  __device__ norm_block(const norm_arguments& given, row_number_memory& shared)
      : io_(given),
        how_(given.how),
        part_(static_cast<int>(blockIdx.x) % how_.spread),
        worker_(static_cast<int>(blockIdx.x) / how_.spread),
        workers_(static_cast<int>(gridDim.x) / how_.spread),
        first_(how_.first_row(how_.own_rank) + worker_),
        end_(how_.end_row(how_.own_rank)),
        slot_(static_cast<int>(blockIdx.x) * norm_warps + static_cast<int>(threadIdx.x) / 32),
        numbers_(shared, how_.spread, part_) {}

  /// Issues the loads of this rank's own part of the first row, which need no epoch.
  __device__ void begin() {
    if (first_ >= end_) return;
    fetch(first_);
    if (holds_weight) weight_ = weight_at(0);
  }

  __device__ void run(std::uint64_t epoch) {
    epoch_ = epoch;
    numbers_.meet_others();
    const bool speaks = threadIdx.x < 32;
    // After a failed wait, which the host reports, nothing is signalled.
    if (how_.reserves() &&
        __syncthreads_and(speaks ? reserve_slabs(io_.run, how_, epoch_, slot_) : 1) == 0)
      return;
    send();
    bool added = true;
    for (int row = first_; row < end_ && added; row += workers_) {
      if (row != first_) fetch(row);
      added = take(row);
    }
    if (how_.reserves() && __syncthreads_and(added ? 1 : 0) != 0 && speaks)
      retire_slabs(io_.run, how_, *io_.done, static_cast<int>(gridDim.x), epoch_, slot_);
  }

 private:
  // Whether the weight and the residual fit in registers.
  static constexpr bool holds_weight = chunks == 1;
  static constexpr bool holds_residual = chunks < most_row_parts;

  /// The index, in a row, of the thread's group k of eight elements.
  [[nodiscard]] __device__ int at(int k) const {
    return static_cast<int>(threadIdx.x) + (part_ * chunks + k) * norm_threads;
  }
  [[nodiscard]] __device__ bool has(int k) const { return at(k) < how_.chunks(); }
  /// As `at`, clamped to the row: without a condition, the loads are issued back to back.
  [[nodiscard]] __device__ int readable(int k) const { return min(at(k), how_.chunks() - 1); }

  [[nodiscard]] __device__ uint4 weight_at(int k) const {
    return static_cast<const uint4*>(io_.weight)[readable(k)];
  }
  [[nodiscard]] __device__ uint4 residual_at(int row, int k) const {
    return row_of(io_.residual, row)[readable(k)];
  }

  __device__ void fetch(int row) {
#pragma unroll
    for (int k = 0; k < chunks; ++k) own_[k] = row_of(io_.run.in, row)[readable(k)];
#pragma unroll
    for (int k = 0; k < chunks && holds_residual; ++k) residual_[k] = residual_at(row, k);
  }

  /// Sends rows of the own input to the ranks that add them, beginning with the next rank.
  __device__ void send() const {
    const action_note noted(io_.run, action::copy);
    if (!how_.passes_on) {
      for (int row = worker_; row < how_.tokens; row += workers_) send_row(row, 1, how_.ranks - 1);
      return;
    }
    for (int hop = 1; hop < how_.ranks; ++hop) {
      const int owner = receiver_at_hop(how_.own_rank, hop, how_.ranks);
      for (int row = how_.first_row(owner) + worker_; row < how_.end_row(owner); row += workers_)
        send_row(row, hop, 1);
    }
  }
  __device__ void send_row(int row, int first_hop, int hops) const {
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
      if (!has(k)) break;
      const uint4 words = as_words(row == first_ ? own_[k] : row_of(io_.run.in, row)[at(k)]);
      for (int hop = first_hop; hop < first_hop + hops; ++hop) {
        const int owner = receiver_at_hop(how_.own_rank, hop, how_.ranks);
        store_sum_words(slab_row(owner, how_.own_rank, row) + at(k), words);
      }
    }
  }

  /// Adds a row over all ranks and normalises it. False after a failed wait.
  [[nodiscard]] __device__ bool take(int row) {
    const action_note noted(io_.run, action::normalise);
    uint4 x[chunks];
    float squares[chunks];
    bool going = true;
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
      x[k] = make_uint4(0, 0, 0, 0);
      squares[k] = 0;
      if (__any_sync(everybody, has(k) ? 1 : 0) == 0) continue;
      const uint4 residual = holds_residual ? residual_[k] : residual_at(row, k);
      eight<T> sums;
      going = going && add(row, k, sums);
      if (!has(k) || !going) continue;
      sums.add(eight<T>::of(residual));
      x[k] = sums.pairs();
      each_copy(io_.x, [&](void* to) { row_of(to, row)[at(k)] = x[k]; });
      const eight<T> rounded = eight<T>::of(x[k]);
#pragma unroll
      for (const float v : rounded.v) squares[k] += v * v;
    }
    float sum = 0;
    if (!numbers_.combined(
            squares, going, [](float a, float b) { return a + b; }, sum))
      return false;
    normalise(row, x, 1.0F / sqrtf(sum / static_cast<float>(how_.hidden) + io_.epsilon));
    return true;
  }

  /// (row of rank 0 + row of rank 1) + ..., eight elements per lane. All lanes must call this.
  [[nodiscard]] __device__ bool add(int row, int chunk, eight<T>& sums) const {
    constexpr int together = chunks == most_row_parts ? 2 : 4;  // ranks; registers hold no more
    const int others = how_.ranks - 1;
    // The rank's own words are converted like sent ones, so that all ranks add the same bits, also
    // of NaNs.
    const auto own = eight<T>::of(from_words(as_words(own_[chunk])));
    const auto add_more = [&](const eight<T>& more, int rank) {
      if (rank == 0) {
        sums = more;
      } else {
        sums.add(more);
      }
    };
    slab_place<partial_words<T, false>> from;
    from.base = slab_row(how_.own_rank, 0, row) + at(chunk);
    from.stride = how_.in_slab() / norm_rows::elements;
    from.skipped = how_.own_rank;
    from.epoch = epoch_;
    from.room = how_.slab_of(0, epoch_);
    for (from.begin = 0; from.begin < others; from.begin += together) {
      from.count = has(chunk) ? min(others - from.begin, together) : 0;
      slab_words<partial_words<T, false>, together> words(from);
      if (!words.await(io_.run, slot_)) return false;
      if (!left_out(mutant::sums_reset)) words.reset_words();
#pragma unroll
      for (int k = 0; k < together; ++k) {
        if (k >= from.count) break;
        if (from.begin + k == how_.own_rank) add_more(own, how_.own_rank);
        add_more(eight<T>::of(from_words(words.found[k][0])), from.rank_of(k));
      }
    }
    if (how_.own_rank == others) add_more(own, how_.own_rank);
    return true;
  }

  __device__ void normalise(int row, const uint4 (&x)[chunks], float inverse) {
    float scale = io_.scale;
    if (io_.output == norm_output::e4m3_per_token) {
      float largest[chunks] = {};
#pragma unroll
      for (int k = 0; k < chunks; ++k) {
        if (!has(k)) break;
        const eight<T> normed = normed_at(x, k, inverse);
#pragma unroll
        for (const float v : normed.v) largest[k] = fmaxf(largest[k], fabsf(v));
      }
      float most = 0;
      (void)numbers_.combined(
          largest, true, [](float a, float b) { return fmaxf(a, b); }, most);
      scale = most > 0 ? most / 448.0F : 1.0F;
      if (threadIdx.x == 0 && part_ == 0)
        each_copy(io_.scales, [&](void* to) { static_cast<float*>(to)[row] = scale; });
    }
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
      if (!has(k)) break;
      const eight<T> normed = normed_at(x, k, inverse);
      if (io_.output == norm_output::same) {
        const uint4 pairs = normed.pairs();
        each_copy(io_.out, [&](void* to) { row_of(to, row)[at(k)] = pairs; });
      } else {
        const uint2 bytes = narrowed(normed, scale);
        each_copy(io_.out, [&](void* to) {
          static_cast<uint2*>(to)[std::int64_t{row} * how_.chunks() + at(k)] = bytes;
        });
      }
    }
  }
  [[nodiscard]] __device__ eight<T> normed_at(const uint4 (&x)[chunks], int k,
                                              float inverse) const {
    eight<T> values = eight<T>::of(x[k]);
    const eight<T> weight = eight<T>::of(holds_weight ? weight_ : weight_at(k));
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

  [[nodiscard]] __device__ const uint4* row_of(const void* matrix, int row) const {
    return static_cast<const uint4*>(matrix) + std::int64_t{row} * how_.chunks();
  }
  [[nodiscard]] __device__ uint4* row_of(void* matrix, int row) const {
    return static_cast<uint4*>(matrix) + std::int64_t{row} * how_.chunks();
  }
  [[nodiscard]] __device__ uint4* slab_row(int owner, int source, int row) const {
    return reinterpret_cast<uint4*>(io_.run.inbox.at(owner) +
                                    2 * how_.place_of(source, owner, row, epoch_));
  }
  /// Calls `write(to)` for this rank's copy, and if `passes_on` then for the peers' copies.
  template <class Write>
  __device__ void each_copy(void* own, const Write& write) const {
    write(own);
    if (!how_.passes_on) return;
    for (int hop = 1; hop < how_.ranks; ++hop) {
      const int peer = receiver_at_hop(how_.own_rank, hop, how_.ranks);
      write(static_cast<std::byte*>(own) + (peer - how_.own_rank) * io_.run.between);
    }
  }

  const norm_arguments& io_;
  const norm_rows& how_;
  int part_;    ///< this block's part of a row, where blocks of a cluster share it
  int worker_;  ///< number of this block or, if rows are shared, of its cluster
  int workers_;
  int first_;  ///< first row that it adds
  int end_;
  int slot_;
  std::uint64_t epoch_ = 0;
  row_numbers<chunks> numbers_;
  uint4 own_[chunks];
  uint4 residual_[chunks];
  uint4 weight_;
};

template <class T, int chunks>
__global__ void __launch_bounds__(norm_threads)
    all_reduce_norm_kernel(const __grid_constant__ norm_arguments given) {
  __shared__ row_number_memory shared;
  if (given.run.launch < 0) return;
  norm_block<T, chunks> block(given, shared);
  griddepcontrol_launch_dependents();
  griddepcontrol_wait();
  block.begin();
  const block_run run(given.run, given.run.epochs[blockIdx.x], warp_role::worker);
  block.run(run.epoch());
  __syncthreads();
  run.end();
}

template <class T>
const void* kernel_of(int chunks) {
  if (chunks == 1) return reinterpret_cast<const void*>(all_reduce_norm_kernel<T, 1>);
  if (chunks == 2) return reinterpret_cast<const void*>(all_reduce_norm_kernel<T, 2>);
  return reinterpret_cast<const void*>(all_reduce_norm_kernel<T, most_row_parts>);
}

}  // namespace

const void* norm_kernel(dtype type, const norm_rows& how) {
  const int chunks = how.parts() / how.spread;
  return type == dtype::f16 ? kernel_of<__half>(chunks) : kernel_of<__nv_bfloat16>(chunks);
}

}  // namespace untax::gpu
