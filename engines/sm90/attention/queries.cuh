#pragma once

#include <cstdint>

#include "engines/sm90/attention/arguments.hpp"
#include "engines/sm90/attention/config.cuh"
#include "engines/sm90/ptx/async_copy.cuh"

namespace untax::sm90 {

/// The queries of two items in shared memory, used in turn: 16 rows, zeros where the group has no
/// head. They are asked for an item ahead, since behind a stream of keys and values they take long.
template <int width>
class query_rows {
  using config = attention_config<width>;

 public:
  __device__ query_rows(const attention_arguments& a, std::uint32_t memory)
      : from_(static_cast<const std::uint16_t*>(a.memory.queries)),
        stride_(a.memory.queries_stride),
        group_(a.shape.group),
        memory_(memory) {}

  /// By all streaming threads; part of the next group of copies of each.
  __device__ void fetch(int item) const {
    constexpr int words = width / 2;
    const std::uint16_t* const first = from_ + static_cast<std::int64_t>(item) * group_ * stride_;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < most_heads_of_group * words;
         i += config::streaming_threads) {
      const int row = i / words;
      const bool there = row < group_;
      copy_4_bytes(at(item) + static_cast<std::uint32_t>(row * config::query_pitch + i % words * 4),
                   first + (there ? row : 0) * stride_ + i % words * 2, there);
    }
  }
  [[nodiscard]] __device__ std::uint32_t at(int item) const noexcept {
    return memory_ + static_cast<std::uint32_t>(item % 2 * config::query_bytes);
  }

 private:
  const std::uint16_t* from_;
  std::int64_t stride_;
  int group_;
  std::uint32_t memory_;
};

}  // namespace untax::sm90
