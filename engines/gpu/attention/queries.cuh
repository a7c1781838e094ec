#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/arguments.hpp"
#include "engines/gpu/attention/config.cuh"
#include "engines/gpu/sm90/ptx/async_copy.cuh"
#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// Three rotating shared-memory buffers, each for an item's queries: 16 rows, zeros where the group
/// has no head. Queries are prefetched one item ahead, as their loads queue behind tile loads.
template <int width>
class query_rows {
  using config = attention_config<width>;

 public:
  static constexpr int places = 3;
  static constexpr std::size_t shared_bytes = places * config::query_bytes + 16;  ///< + mbarrier

  __device__ query_rows(const attention_arguments& a, std::byte* memory)
      : from_(static_cast<const std::uint16_t*>(a.memory.queries)),
        stride_(a.memory.queries_stride),
        group_(a.shape.group),
        memory_(static_cast<std::uint32_t>(__cvta_generic_to_shared(memory))),
        there_(reinterpret_cast<stage_barrier*>(memory + places * config::query_bytes)) {}

  /// One thread must call this before any other thread uses the object.
  __device__ void init() const { there_->init(config::streaming); }

  /// Signals that the warp's copies for the next segment are complete. All lanes must call this.
  __device__ void arrive() const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) there_->arrive();
  }
  /// Waits until the copies of all warps for `segment` (counted from 0) are complete. Then no warp
  /// still works on segment - 2, so the buffer of segment - 2 is free.
  __device__ void await(int segment) const {
    there_->wait(static_cast<std::uint32_t>(segment) & 1U);
  }

  /// Issues copies to buffer `place`, 0 to 2, in the next copy group. All streaming threads call.
  __device__ void fetch(int item, int place) const {
    constexpr int words = width / 2;
    const std::uint16_t* const first = from_ + static_cast<std::int64_t>(item) * group_ * stride_;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < most_heads_of_group * words;
         i += config::streaming_threads) {
      const int row = i / words;
      const bool there = row < group_;
      copy_4_bytes(
          at(place) + static_cast<std::uint32_t>(row * config::query_pitch + i % words * 4),
          first + (there ? row : 0) * stride_ + i % words * 2, there);
    }
  }
  [[nodiscard]] __device__ std::uint32_t at(int place) const noexcept {
    return memory_ + static_cast<std::uint32_t>(place * config::query_bytes);
  }

 private:
  const std::uint16_t* from_;
  std::int64_t stride_;
  int group_;
  std::uint32_t memory_;
  stage_barrier* there_;
};

}  // namespace untax::gpu
