#pragma once

#include <cstdint>

#include <cuda/atomic>

#include "engines/sm90/attention/math.cuh"

namespace untax::sm90 {

/// The results of the warps of a block become one: two by two, in a fixed order, through shared
/// memory. Then the result lies normalised in the second region, each row with its maximum and the
/// logarithm of its sum. By all threads; they are synchronised before and after.
template <class Element, int width>
class block_merge {
  using config = attention_config<width>;
  using warp_result = warp_attention<Element, width>;
  static_assert(config::warps == 4 && config::regions == 2);

 public:
  __device__ block_merge(float* memory, int group) : memory_(memory), rows_(group > 8 ? 2 : 1) {}

  [[nodiscard]] __device__ result_region<width> region(int i) const noexcept {
    return {memory_ + i * config::region_floats,
            memory_ + config::regions * config::region_floats + i * config::statistics_floats};
  }

  __device__ void operator()(warp_result& mine) const {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (warp >= 2) put(region(warp - 2), mine);
    __syncthreads();
    if (warp < 2) add(region(warp), mine);
    __syncthreads();
    if (warp == 1) put(region(0), mine);
    __syncthreads();
    if (warp == 0) {
      add(region(0), mine);
      normalise(mine);
      put(region(1), mine);
    }
    __syncthreads();
  }

 private:
  [[nodiscard]] __device__ static int row() { return warp_result::lane() / 4; }
  [[nodiscard]] __device__ static int col() { return 2 * (warp_result::lane() % 4); }

  __device__ void put(const result_region<width>& to, const warp_result& mine) const {
    for (int r = 0; r < rows_; ++r) {
      if (warp_result::lane() % 4 != 0) break;
      to.statistics[2 * (row() + 8 * r)] = r == 0 ? mine.most[0] : mine.most[1];
      to.statistics[2 * (row() + 8 * r) + 1] = r == 0 ? mine.total[0] : mine.total[1];
    }
#pragma unroll
    for (int j = 0; j < width / 8; ++j) {
      *reinterpret_cast<float2*>(to.row(row()) + j * 8 + col()) = {mine.sum[j][0], mine.sum[j][1]};
      if (rows_ == 2) {
        *reinterpret_cast<float2*>(to.row(row() + 8) + j * 8 + col()) = {mine.sum[j][2],
                                                                         mine.sum[j][3]};
      }
    }
  }

  __device__ void add(const result_region<width>& from, warp_result& mine) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (r >= rows_) break;
      const float most = from.statistics[2 * (row() + 8 * r)];
      const float total = from.statistics[2 * (row() + 8 * r) + 1];
      const float high = fmaxf(most, mine.most[r]);
      const float reference = high == warp_result::nothing() ? 0 : high;
      const float own = power_of_2(mine.most[r] - reference);
      const float other = power_of_2(most - reference);
      mine.most[r] = high;
      mine.total[r] = mine.total[r] * own + total * other;
#pragma unroll
      for (int j = 0; j < width / 8; ++j) {
        const float2 sum =
            *reinterpret_cast<const float2*>(from.row(row() + 8 * r) + j * 8 + col());
        mine.sum[j][2 * r] = mine.sum[j][2 * r] * own + sum.x * other;
        mine.sum[j][2 * r + 1] = mine.sum[j][2 * r + 1] * own + sum.y * other;
      }
    }
  }

  __device__ static void normalise(warp_result& mine) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float part = mine.total[r] > 0 ? 1 / mine.total[r] : 0;
      mine.total[r] = mine.total[r] > 0 ? log2f(mine.total[r]) : 0;
#pragma unroll
      for (int j = 0; j < width / 8; ++j) {
        mine.sum[j][2 * r] *= part;
        mine.sum[j][2 * r + 1] *= part;
      }
    }
  }

  float* memory_;
  int rows_;
};

/// Segments of an item that several blocks have. Who leaves the last one combines them all, in the
/// order of the blocks.
template <int width>
class segment_merge {
  using config = attention_config<width>;

 public:
  __device__ segment_merge(const attention_arguments& a, const attention_work<config::keys>& work)
      : a_(a), work_(work) {}

  /// Leaves the block's result of a segment, and says whether it was the last one that was missing;
  /// then the result of the item lies where that of the segment did. By all threads, which are
  /// synchronised after; `flag` is a word of shared memory.
  [[nodiscard]] __device__ __noinline__ bool operator()(const result_region<width>& result,
                                                        const attention_segment& segment,
                                                        bool is_first, int* flag) const {
    const attention_item& item = segment.item;
    leave(result, slot(static_cast<int>(blockIdx.x), is_first));
    __syncthreads();
    const int from = work_.block_of(item.first);
    const int to = work_.block_of(item.first + item.tiles - 1);
    if (threadIdx.x == 0) {
      std::uint32_t& word = a_.arrivals[item.index(a_.shape)];
      cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device> arrivals(word);
      const std::uint32_t before = arrivals.fetch_add(1, cuda::memory_order_acq_rel);
      *flag = before + 1 == static_cast<std::uint32_t>(to - from + 1) ? 1 : 0;
      if (*flag != 0) arrivals.store(0, cuda::memory_order_relaxed);
    }
    __syncthreads();
    if (*flag == 0) return false;
    combine(result, from, to, work_.begin_of(from) == item.first);
    __syncthreads();
    return true;
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;
  static constexpr int vectors = width / 64;  // of two floats, for each lane

  [[nodiscard]] __device__ static int slot(int block, bool is_first) {
    return 2 * block + (is_first ? 0 : 1);
  }
  [[nodiscard]] __device__ float* row(int at, int g) const {
    return a_.segments + (static_cast<std::int64_t>(at) * most_heads_of_group + g) * width;
  }
  [[nodiscard]] __device__ float* statistics(int at, int g) const {
    return a_.statistics + (static_cast<std::int64_t>(at) * most_heads_of_group + g) * 2;
  }

  __device__ void leave(const result_region<width>& result, int at) const {
    constexpr int quads = width / 4;
    for (int i = static_cast<int>(threadIdx.x); i < a_.shape.group * quads; i += config::threads) {
      *reinterpret_cast<float4*>(row(at, i / quads) + i % quads * 4) =
          *reinterpret_cast<const float4*>(result.row(i / quads) + i % quads * 4);
    }
    for (int i = static_cast<int>(threadIdx.x); i < a_.shape.group * 2; i += config::threads)
      statistics(at, i / 2)[i % 2] = result.statistics[i];
  }

  __device__ void combine(const result_region<width>& result, int from, int to,
                          bool begins_there) const {
    for (int g = static_cast<int>(threadIdx.x) / 32; g < a_.shape.group; g += config::warps)
      combine_row(result, g, from, to, begins_there);
  }

  /// By one warp. The item is the first segment of every block but the first one, unless it begins
  /// there.
  __device__ void combine_row(const result_region<width>& result, int g, int from, int to,
                              bool begins_there) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto at = [&](int block) { return slot(block, block != from || begins_there); };
    const auto logarithm = [&](int block) {
      const float2 s = __ldcg(reinterpret_cast<const float2*>(statistics(at(block), g)));
      return s.x + s.y;
    };
    float high = __int_as_float(0xff800000);
    for (int block = from + lane; block <= to; block += 32) high = fmaxf(high, logarithm(block));
#pragma unroll
    for (int away = 16; away > 0; away /= 2)
      high = fmaxf(high, __shfl_xor_sync(everybody, high, away));
    const float reference = high == __int_as_float(0xff800000) ? 0 : high;

    float total = 0;
    float2 sum[vectors] = {};
    for (int begin = from; begin <= to; begin += 32) {
      const float mine = begin + lane <= to ? power_of_2(logarithm(begin + lane) - reference) : 0;
      add_rows(g, begin, to - begin + 1 < 32 ? to - begin + 1 : 32, mine, at, total, sum);
    }
    const float part = total > 0 ? 1 / total : 0;
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      *reinterpret_cast<float2*>(result.row(g) + v * 64 + 2 * lane) = {sum[v].x * part,
                                                                       sum[v].y * part};
    }
    if (lane != 0) return;
    result.statistics[2 * g] = high;
    result.statistics[2 * g + 1] = total > 0 ? log2f(total) : 0;
  }

  /// Up to 32 rows, of which lane i knows the weight of the i-th.
  template <class At>
  __device__ void add_rows(int g, int begin, int count, float mine, const At& at, float& total,
                           float2 (&sum)[vectors]) const {
    constexpr int at_once = 8;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = 0; i < count; i += at_once) {
      float2 rows[at_once][vectors];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int block = i + k < count ? begin + i + k : begin + i;
#pragma unroll
        for (int v = 0; v < vectors; ++v)
          rows[k][v] =
              __ldcg(reinterpret_cast<const float2*>(row(at(block), g) + v * 64 + 2 * lane));
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        // Lanes behind the last one have no weight.
        const float weight = __shfl_sync(everybody, mine, i + k);
        total += weight;
#pragma unroll
        for (int v = 0; v < vectors; ++v) {
          sum[v].x += weight * rows[k][v].x;
          sum[v].y += weight * rows[k][v].y;
        }
      }
    }
  }

  const attention_arguments& a_;
  const attention_work<config::keys>& work_;
};

}  // namespace untax::sm90
