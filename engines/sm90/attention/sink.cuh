#pragma once

#include <cstdint>

#include "engines/sm90/attention/ranks.cuh"

namespace untax::sm90 {

/// Where the whole results of items go, by four elements of a row or by packets.
template <class Element, int width>
class item_sink {
 public:
  __device__ item_sink(const attention_arguments& a, std::uint64_t epoch) : a_(a), epoch_(epoch) {}

  /// Four elements of a row, normalised, and the row's statistics.
  __device__ void put(std::int64_t row, int column, const float (&elements)[4],
                      const float2& statistics) const {
    if (a_.shape.partials == dtype::f32) {
      put_as<float>(row, column, elements, statistics);
    } else {
      put_as<bf16>(row, column, elements, statistics);
    }
  }
  /// Packet `i` of a row, and that of the statistics with the first one.
  template <class Wire>
  __device__ void put_packet(std::int64_t row, int i, const float* elements,
                             const float2& statistics) const {
    using format = partial_format<Wire>;
    constexpr int last = format::packets(width) - 1;
    const std::uint64_t data = format::data(elements);
    const std::uint64_t both = format::data(statistics);
    if (a_.sink != attention_sink::ranks) {
      keep<Wire>(row, i, data);
      if (i == 0) keep<Wire>(row, last, both);
    } else if (a_.ranks > 1) {
      const rank_exchange<Element, Wire> exchange(a_, epoch_);
      exchange.send(row, i, data);
      if (i == 0) exchange.send(row, last, both);
    } else {
      finish<Wire>(row, i, data, both);
    }
  }

 private:
  template <class Wire>
  __device__ void put_as(std::int64_t row, int column, const float (&elements)[4],
                         const float2& statistics) const {
    constexpr int columns = partial_format<Wire>::columns;
#pragma unroll
    for (int k = 0; k < 4; k += columns)
      put_packet<Wire>(row, (column + k) / columns, elements + k, statistics);
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
