#pragma once

#include <cstdint>

#include "engines/gpu/attention/ranks.cuh"

namespace untax::gpu {

/// Stores or sends the complete partial results of items, four elements of a row at a time.
template <class Element, int width>
class item_sink {
 public:
  __device__ item_sink(const attention_arguments& a, std::uint64_t epoch) : a_(a), epoch_(epoch) {}

  /// Stores or sends four normalised elements of a row; at column 0 also the row's statistics.
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
    const typename format::four four = format::narrow(elements);
    const std::uint64_t tail = format::narrow(statistics);
    if (a_.sink == attention_sink::rows) return keep<Wire>(row, column, four, tail);
    if (a_.sink == attention_sink::ranks && !a_.receives()) return finish<Wire>(row, column, four);
    put_packet<Wire>(row, column / 4, format::marked(four, epoch_));
    if (column == 0) put_packet<Wire>(row, packets_of_row(width) - 1, {tail, epoch_});
  }

  template <class Wire>
  __device__ void put_packet(std::int64_t row, int i, const packet& p) const {
    const rank_exchange<Element, Wire> exchange(a_, epoch_);
    if (a_.sink == attention_sink::outbox) {
      exchange.leave(row, i, p);
    } else {
      exchange.send(row, i, p);
    }
  }

  template <class Wire>
  __device__ void keep(std::int64_t row, int column,
                       const typename partial_format<Wire>::four& four, std::uint64_t tail) const {
    using format = partial_format<Wire>;
    std::uint32_t* const to = a_.rows + row * format::row_words(width);
#pragma unroll
    for (int k = 0; k < format::count; ++k) to[column / format::each + k] = four.word[k];
    if (column > 0) return;
    to[width / format::each] = static_cast<std::uint32_t>(tail);
    if constexpr (format::each == 1) to[width + 1] = static_cast<std::uint32_t>(tail >> 32U);
  }
  /// Stores the final result if this is the only rank.
  template <class Wire>
  __device__ void finish(std::int64_t row, int column,
                         const typename partial_format<Wire>::four& four) const {
    auto* const out = static_cast<std::uint16_t*>(a_.memory.out) + row * a_.memory.out_stride;
    rank_combination<Element, Wire>::copy(four, out + column);
  }

  const attention_arguments& a_;
  std::uint64_t epoch_;
};

}  // namespace untax::gpu
