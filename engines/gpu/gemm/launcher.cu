#include "engines/gpu/gemm/launcher.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/launch/this_gpu.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax::gpu {

static_assert(no_sum_bits == partial_sums::empty_word);

void require_hopper() {
  const int major = attribute_here(cudaDevAttrComputeCapabilityMajor);
  if (major == 9) return;
  throw error(errc::unsupported,
              fmt::format("this GEMM is for GPUs of compute capability 9.0, this one has {}.{}",
                          major, attribute_here(cudaDevAttrComputeCapabilityMinor)));
}

gpu_model gpu_here() {
  const int l2_bytes = attribute_here(cudaDevAttrL2CacheSize);
  return {num_sms_here(), costs_of(static_cast<std::size_t>(l2_bytes))};
}

gemm_launcher::gemm_launcher(const gemm_plan& plan, dtype type, const kernel_variant& variant,
                             int comm_ctas, const kernel_start& start)
    : plan_(plan),
      kernel_(variant.kernel),
      shared_bytes_(variant.shared_bytes),
      comm_ctas_(comm_ctas),
      early_(start.early) {
  require_hopper();
  require_place();
  const tile_config& config = plan.config;
  arguments_.schedule = tile_scheduler(plan.schedule);
  arguments_.type = type;
  arguments_.multicast_rows = plan.multicast_rows;
  arguments_.stage_bytes = stage_bytes(plan);
  arguments_.early_stages = reads_early(config) ? std::min(start.stages, config.stages) : 0;
}

void gemm_launcher::allocate_partials(std::size_t bytes, room_pool* pool) {
  if (bytes > 0) share_partials(partials_of(pool, bytes));
}

void gemm_launcher::share_partials(std::shared_ptr<const partial_sums> partials) {
  partials_ = std::move(partials);
  arguments_.partials = partials_->data();
}

void gemm_launcher::launch(const gemm_matrices& matrices, const void* io,
                           cudaStream_t stream) const {
  gemm_arguments arguments = arguments_;
  static_cast<gemm_matrices&>(arguments) = matrices;
  cudaLaunchConfig_t launch = launch_of(blocks(), block_threads, shared_bytes_, stream);
  cudaLaunchAttribute attributes[] = {gpu::in_clusters(cluster_blocks(plan_.config)),
                                      gpu::programmatic_launch(early_)};
  launch.attrs = attributes;
  launch.numAttrs = 2;
  void* parameters[] = {&arguments, const_cast<void*>(io)};
  gpu::require(cudaLaunchKernelExC(&launch, kernel_, parameters), "cannot start a GEMM");
}

/// Blocks wait for blocks with lower numbers, and for peers, so all have to be resident at once.
void gemm_launcher::require_place() const {
  load_kernel(kernel_, "cannot load a GEMM");
  gpu::require(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes_)),
               "there is not enough shared memory for a GEMM");
  cudaLaunchConfig_t launch = launch_of(blocks(), block_threads, shared_bytes_, nullptr);
  const int together = cluster_blocks(plan_.config);
  cudaLaunchAttribute cluster = gpu::in_clusters(together);
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  int places = 0;
  gpu::require(cudaOccupancyMaxActiveClusters(&places, kernel_, &launch),
               "cannot ask how many blocks of a GEMM there is room for");
  if (places * together >= blocks()) return;
  throw error(errc::unsupported,
              fmt::format("a GEMM of {} blocks in clusters of {}, and this GPU has room for {} "
                          "clusters",
                          blocks(), together, places));
}

}  // namespace untax::gpu
