#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/variant.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/rooms/partial_sums.hpp"

namespace untax::gpu {

/// What a kernel may do before the previous kernels in the stream have ended.
struct kernel_start {
  bool early = true;  ///< launch early (programmatic dependent launch)
  int stages = 0;     ///< stages whose B is loaded early, where that pays; no previous kernel may
                      ///< write B
};

/// Launches the kernel of a plan, with the source, sink and senders for which it was compiled.
/// Loads it, and checks that all blocks fit.
class gemm_launcher {
 public:
  /// For the current device. `comm_ctas`: communication CTAs in the grid, a multiple of the blocks
  /// of a cluster. Throws `unsupported` if it is no Hopper GPU or too small.
  gemm_launcher(const gemm_plan& plan, dtype type, const kernel_variant& variant, int comm_ctas,
                const kernel_start& start = {});

  /// Allocates `bytes` bytes, if any, for partial sums of tiles that blocks share. With a pool the
  /// memory is shared by the plans of the pool, which run in turn; without one the launcher owns
  /// it. To be called once. Throws `out_of_memory`.
  void allocate_partials(std::size_t bytes, room_pool* pool = nullptr);
  /// Uses the partial sums of other launchers, whose launches take turns with these.
  void share_partials(std::shared_ptr<const partial_sums> partials);

  /// The next launches follow another schedule of the same grid: see run_schedule.hpp.
  void set_schedule(const tile_schedule& schedule) {
    plan_.schedule = schedule;
    arguments_.schedule = tile_scheduler(schedule);
  }
  /// Sets the number of rows of the N operand that each block loads in the next launches: see
  /// multicast_rows_of.
  void set_multicast_rows(int rows) {
    plan_.multicast_rows = arguments_.multicast_rows = rows;
    arguments_.stage_bytes = stage_bytes(plan_);
  }

  /// `io`: the `gemm_io` of the kernel. The launch may be captured.
  void launch(const gemm_matrices& matrices, const void* io, cudaStream_t stream) const;

  [[nodiscard]] const gemm_plan& plan() const noexcept { return plan_; }
  [[nodiscard]] int blocks() const noexcept { return comm_ctas_ + plan_.blocks(); }

 private:
  void require_place() const;

  gemm_plan plan_;
  const void* kernel_;
  std::size_t shared_bytes_;
  int comm_ctas_;
  bool early_;
  gemm_arguments arguments_{};
  std::shared_ptr<const partial_sums> partials_;
};

/// Throws `unsupported`, naming the compute capability, unless the current device is a Hopper GPU.
void require_hopper();

/// The current device, as the cost model of the GEMM describes it.
[[nodiscard]] gpu_model gpu_here();

}  // namespace untax::gpu
