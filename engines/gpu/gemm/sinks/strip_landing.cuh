#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/sinks/sum_fragments.hpp"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// Bytes of so many fragments of 16-bit partials.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int bytes_of_halves(int fragments) {
  return fragments * sum_fragments::lanes * 8;
}

/// Shared memory of an epilogue warp into which TMA brings strips of words that peers have sent,
/// some of them ahead of their use. Words that have not come are brought, too: as nothing.
struct alignas(128) strip_landing {
  static constexpr int slots = 8;
  static constexpr int parts = 4;  ///< fragments of a strip
  static constexpr int bytes = bytes_of_halves(parts);

  std::byte strips[slots][bytes];
  stage_barrier come[slots];

  /// What the warp knows of it. By all its lanes.
  class view {
   public:
    explicit __device__ view(strip_landing& of) : of_(of), leads_(threadIdx.x % 32 == 0) {
      if (leads_) {
        for (stage_barrier& barrier : of_.come) barrier.init(1);
        cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
      }
      __syncwarp();
    }

    /// Asks for the next strip, which lies at `place()`; at most `slots` are on their way, or being
    /// read.
    template <class Place>
    __device__ void ask(const Place& place) {
      if (leads_) {
        of_.come[asked_].arrive_and_expect(bytes);
        cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global,
                                 of_.strips[asked_], place(), bytes, &of_.come[asked_].word);
      }
      asked_ = asked_ + 1 == slots ? 0 : asked_ + 1;
    }
    /// The address in shared memory of the one that was asked for longest ago.
    [[nodiscard]] __device__ std::uint32_t await() {
      of_.come[reading_.stage].wait(reading_.parity);
      return shared_address(of_.strips[reading_.stage]);
    }
    /// It has been read by all lanes.
    __device__ void advance() { reading_.template advance<slots>(); }

   private:
    strip_landing& of_;
    bool leads_;
    int asked_ = 0;
    ring_cursor reading_;
  };
};

}  // namespace untax::gpu
