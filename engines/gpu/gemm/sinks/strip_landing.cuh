#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/sinks/sum_fragments.hpp"
#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

inline constexpr int strip_parts = subtile_side / 8;  ///< fragments of a strip
inline constexpr int strip_bytes = strip_parts * sum_fragments::lanes * 8;

/// Shared memory of an epilogue warp into which TMA brings strips of words that peers have sent,
/// some of them ahead of their use. Words that have not come are brought, too: as nothing.
struct alignas(128) strip_landing {
  static constexpr int slots = 4;

  std::byte strips[slots][strip_bytes];
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

    /// Asks for the next strip; at most `slots` are on their way, or being read.
    __device__ void ask(const void* from) {
      if (leads_) {
        of_.come[asked_].arrive_and_expect(strip_bytes);
        cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global,
                                 of_.strips[asked_], from, strip_bytes, &of_.come[asked_].word);
      }
      asked_ = asked_ + 1 == slots ? 0 : asked_ + 1;
    }
    /// The one that was asked for longest ago.
    [[nodiscard]] __device__ const uint4* await() {
      of_.come[reading_.stage].wait(reading_.parity);
      return reinterpret_cast<const uint4*>(of_.strips[reading_.stage]);
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
