#pragma once

#include <cstdint>

#include "engines/sm90/attention/config.cuh"
#include "engines/sm90/attention/ranks.cuh"
#include "engines/sm90/attention/work.cuh"

namespace untax::sm90 {

/// What a block does with the result of an item, which lies in its shared memory.
template <class Element, int width>
class item_sink {
 public:
  __device__ item_sink(const attention_arguments& a, std::uint64_t epoch) : a_(a), epoch_(epoch) {}

  /// By all threads.
  __device__ __noinline__ void put(const result_region<width>& result,
                                   const attention_item& item) const {
    if (a_.shape.partials == dtype::f32) {
      put_as<float>(result, item);
    } else {
      put_as<bf16>(result, item);
    }
    if (a_.sink != attention_sink::flagged) return;
    __syncthreads();
    if (threadIdx.x == 0) cuda_memory::raise_release(a_.flags[item.index(a_.shape)], epoch_);
  }

  /// Combines what comes from all ranks for an item. Whether it came; by all threads, of which each
  /// warp answers for its rows.
  [[nodiscard]] __device__ __noinline__ bool receive(const attention_item& item,
                                                     device_watch& watch) const {
    return a_.shape.partials == dtype::f32 ? receive_as<float>(item, watch)
                                           : receive_as<bf16>(item, watch);
  }

 private:
  [[nodiscard]] __device__ std::int64_t first_row(const attention_item& item) const {
    return static_cast<std::int64_t>(item.index(a_.shape)) * a_.shape.group;
  }

  template <class Wire>
  __device__ void put_as(const result_region<width>& result, const attention_item& item) const {
    constexpr int packets = partial_format<Wire>::packets(width);
    const rank_exchange<Element, Wire> exchange(a_, epoch_);
    const int all = a_.shape.group * packets;
    for (int i = static_cast<int>(threadIdx.x); i < all; i += static_cast<int>(blockDim.x)) {
      const int g = i / packets;
      const std::int64_t row = first_row(item) + g;
      const std::uint64_t data = packet_of<Wire>(result, g, i % packets);
      if (a_.sink != attention_sink::ranks) {
        keep<Wire>(row, i % packets, data);
      } else if (a_.ranks > 1) {
        exchange.send(row, i % packets, data);
      } else if (i % packets != packets - 1) {
        finish<Wire>(row, i % packets, data, packet_of<Wire>(result, g, packets - 1));
      }
    }
  }
  template <class Wire>
  [[nodiscard]] __device__ bool receive_as(const attention_item& item, device_watch& watch) const {
    const rank_exchange<Element, Wire> exchange(a_, epoch_);
    const int warps = static_cast<int>(blockDim.x) / 32;
    for (int g = static_cast<int>(threadIdx.x) / 32; g < a_.shape.group; g += warps) {
      if (!exchange.receive(first_row(item) + g, watch)) return false;
    }
    return true;
  }

  template <class Wire>
  [[nodiscard]] __device__ static std::uint64_t packet_of(const result_region<width>& result, int g,
                                                          int i) {
    using format = partial_format<Wire>;
    const float* const statistics = result.statistics + 2 * g;
    const std::uint64_t low = format::word(result.row(g), statistics, width, 2 * i);
    const std::uint64_t high = format::word(result.row(g), statistics, width, 2 * i + 1);
    return low | high << 32U;
  }
  template <class Wire>
  __device__ void keep(std::int64_t row, int i, std::uint64_t data) const {
    constexpr int words = partial_format<Wire>::row_words(width);
    std::uint32_t* const to = a_.rows + row * words + 2 * i;
    to[0] = static_cast<std::uint32_t>(data);
    if (2 * i + 1 < words) to[1] = static_cast<std::uint32_t>(data >> 32U);
  }
  /// The result, where there are no other ranks.
  template <class Wire>
  __device__ void finish(std::int64_t row, int i, std::uint64_t data,
                         std::uint64_t statistics) const {
    using combination = rank_combination<Element, Wire>;
    auto* const out = static_cast<std::uint16_t*>(a_.memory.out) + row * a_.memory.out_stride;
    const std::uint64_t all[combination::most_ranks] = {statistics};
    const std::uint64_t own[combination::most_ranks] = {data};
    combination only;
    only.weigh(all, 1);
    only.combine(own, 1, out + i * partial_format<Wire>::columns);
  }

  const attention_arguments& a_;
  std::uint64_t epoch_;
};

}  // namespace untax::sm90
