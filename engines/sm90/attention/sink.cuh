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

 private:
  template <class Wire>
  __device__ void put_as(std::int64_t row, int column, const float (&elements)[4],
                         const float2& statistics) const {
    using format = partial_format<Wire>;
    constexpr int count = 4 / format::columns;
    std::uint64_t data[count];
#pragma unroll
    for (int k = 0; k < count; ++k) data[k] = format::data(elements + k * format::columns);
    const std::uint64_t both[] = {format::data(statistics)};
    put_packets<Wire>(row, column / format::columns, data);
    if (column == 0) put_packets<Wire>(row, format::packets(width) - 1, both);
  }

  /// Packet `i` of a row and those behind it; that of the statistics is the last.
  template <class Wire, int count>
  __device__ void put_packets(std::int64_t row, int i, const std::uint64_t (&data)[count]) const {
    constexpr int packets = partial_format<Wire>::packets(width);
    switch (a_.sink) {
      case attention_sink::rows:
        return keep<Wire>(row, i, data);
      case attention_sink::outbox:
#pragma unroll
        for (int k = 0; k < count; ++k)
          untax::detail::store_packet(a_.outbox + row * packets + i + k, {data[k], epoch_});
        return;
      case attention_sink::ranks:
        if (a_.receives()) return rank_exchange<Element, Wire>(a_, epoch_).send(row, i, data);
        if (i < packets - 1) finish<Wire>(row, i, data);
    }
  }

  template <class Wire, int count>
  __device__ void keep(std::int64_t row, int i, const std::uint64_t (&data)[count]) const {
    constexpr int words = partial_format<Wire>::row_words(width);
    std::uint32_t* const to = a_.rows + row * words + 2 * i;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      to[2 * k] = static_cast<std::uint32_t>(data[k]);
      if (2 * (i + k) + 1 < words) to[2 * k + 1] = static_cast<std::uint32_t>(data[k] >> 32U);
    }
  }
  /// The result, where there are no other ranks.
  template <class Wire, int count>
  __device__ void finish(std::int64_t row, int i, const std::uint64_t (&data)[count]) const {
    auto* const out = static_cast<std::uint16_t*>(a_.memory.out) + row * a_.memory.out_stride;
#pragma unroll
    for (int k = 0; k < count; ++k)
      rank_combination<Element, Wire>::copy(data[k], out + (i + k) * partial_format<Wire>::columns);
  }

  const attention_arguments& a_;
  std::uint64_t epoch_;
};

}  // namespace untax::sm90
