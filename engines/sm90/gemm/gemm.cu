#include "engines/sm90/gemm/gemm.hpp"

#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/sm90/gemm/arguments.hpp"
#include "engines/sm90/gemm/protocol.cuh"
#include "engines/sm90/gemm/tensor_map.hpp"
#include "engines/sm90/gemm/variant.hpp"
#include "src/symmetric/cuda/driver.hpp"

namespace untax::sm90 {
namespace {

int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  gpu::require(cudaGetDevice(&device), "there is no device for a GEMM");
  gpu::require(cudaDeviceGetAttribute(&value, which, device), "cannot ask what a device is");
  return value;
}

kernel_variant variant_for(const tile_config& c) {
  if (!c.swapped) return c.columns == 256 ? rows_by_256() : rows_by_128();
  switch (c.columns) {
    case 256:
      return weights_by_256();
    case 128:
      return weights_by_128();
    case 64:
      return c.cluster == 1 ? weights_by_64() : weights_by_64_clusters();
    case 32:
      return weights_by_32();
    default:
      return weights_by_16();
  }
}

/// How many rows of y each block fetches. Rows that do not exist would come as zeros, and slowly;
/// so where one tile has all of y, what is below them is left as it was: it ends up in no element
/// of C.
int fetched_columns(const gemm_shape& s, const gemm_plan& p) {
  if (p.schedule.y_tiles > 1) return own_columns(p.config);
  constexpr std::int64_t swizzled_rows = 8;
  const std::int64_t rows = ceil_div(p.config.swapped ? s.m : s.n, std::int64_t{p.config.cluster});
  return static_cast<int>(ceil_div(rows, swizzled_rows) * swizzled_rows);
}

/// Bytes that L2 reads from memory together. Weights that are read once come in the order in which
/// memory holds them; more at once would only be in the way.
int fetched_together(const tile_config& c) { return c.swapped ? 128 : 256; }

/// Device memory, freed at the end.
class scratch {
 public:
  scratch() = default;
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { cudaFree(data_); }

  void* allocate(std::size_t bytes) {
    if (cudaMalloc(&data_, bytes) == cudaSuccess) return data_;
    cudaGetLastError();
    throw error(errc::out_of_memory,
                fmt::format("a GEMM needs {} bytes of scratch memory, and the GPU has no room "
                            "for them",
                            bytes));
  }

 private:
  void* data_ = nullptr;
};

}  // namespace

int processors_here() { return attribute(cudaDevAttrMultiProcessorCount); }

class gemm::launcher {
 public:
  launcher(const gemm_shape& shape, const gemm_plan& plan)
      : shape_(shape), plan_(plan), variant_(variant_for(plan.config)) {
    const int major = attribute(cudaDevAttrComputeCapabilityMajor);
    if (major != 9)
      throw error(errc::unsupported,
                  fmt::format("this GEMM is for GPUs of compute capability 9.0, this one has {}.{}",
                              major, attribute(cudaDevAttrComputeCapabilityMinor)));
    load();
    arguments_.schedule = plan.schedule;
    arguments_.own_columns = fetched_columns(shape, plan);
    arguments_.slice_bytes =
        (tile_rows(plan.config) + arguments_.own_columns * plan.config.cluster) *
        slice_depth(plan.config) * 2;
    arguments_.weights_ready = plan.weights_ready;
    if (plan.schedule.streamed == 0) return;
    const auto blocks = static_cast<std::size_t>(plan.schedule.clusters * plan.config.cluster);
    const std::size_t bytes = blocks * static_cast<std::size_t>(partial_bytes(plan.config));
    arguments_.partials = static_cast<float*>(partials_.allocate(bytes));
    static_assert(no_sum_bits == 0xffffffffU, "what memset can write");
    gpu::require(cudaMemset(arguments_.partials, 0xff, bytes),
                 "cannot clear scratch memory of a GEMM");
    gpu::require(cudaDeviceSynchronize(), "cannot clear scratch memory of a GEMM");
  }

  void run(const void* a, const void* b, void* c, cudaStream_t stream) const {
    const tile_config& config = plan_.config;
    const bool swapped = config.swapped;
    gemm_arguments arguments = arguments_;
    arguments.x = tensor_map_of(swapped ? b : a, shape_.type, swapped ? shape_.n : shape_.m,
                                shape_.k, tile_rows(config), fetched_together(config));
    arguments.y = tensor_map_of(swapped ? a : b, shape_.type, swapped ? shape_.m : shape_.n,
                                shape_.k, arguments.own_columns, fetched_together(config));
    arguments.c = tensor_map_of(c, shape_.type, shape_.m, shape_.n,
                                swapped ? chunk_columns(config) : chunk_side);
    cudaLaunchConfig_t launch = form(stream);
    // The second one lets it begin to begin while the kernel before it ends.
    cudaLaunchAttribute attributes[] = {cluster_of(), {}};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    launch.attrs = attributes;
    launch.numAttrs = 2;
    alone protocol;
    void* parameters[] = {&arguments, &protocol};
    gpu::require(cudaLaunchKernelExC(&launch, kernel(), parameters), "cannot start a GEMM");
  }

  [[nodiscard]] const gemm_plan& plan() const noexcept { return plan_; }

 private:
  [[nodiscard]] const void* kernel() const { return variant_.of(shape_.type); }

  [[nodiscard]] cudaLaunchConfig_t form(cudaStream_t stream) const {
    cudaLaunchConfig_t launch{};
    launch.gridDim = dim3(static_cast<unsigned>(plan_.schedule.clusters * plan_.config.cluster));
    launch.blockDim = dim3(block_threads);
    launch.dynamicSmemBytes = variant_.shared_bytes;
    launch.stream = stream;
    return launch;
  }

  [[nodiscard]] cudaLaunchAttribute cluster_of() const {
    cudaLaunchAttribute a{};
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = static_cast<unsigned>(plan_.config.cluster);
    a.val.clusterDim.y = 1;
    a.val.clusterDim.z = 1;
    return a;
  }

  /// Blocks wait for blocks with lower numbers: all of them have to have a place.
  void load() {
    gpu::require(cudaFuncSetAttribute(kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(variant_.shared_bytes)),
                 "there is not enough shared memory for a GEMM");
    cudaLaunchConfig_t launch = form(nullptr);
    cudaLaunchAttribute cluster = cluster_of();
    launch.attrs = &cluster;
    launch.numAttrs = 1;
    int places = 0;
    gpu::require(cudaOccupancyMaxActiveClusters(&places, kernel(), &launch),
                 "cannot ask how many blocks of a GEMM there is room for");
    if (places >= plan_.schedule.clusters) return;
    throw error(errc::unsupported,
                fmt::format("a GEMM of {} clusters of {} blocks, and this GPU "
                            "has room for {} clusters",
                            plan_.schedule.clusters, plan_.config.cluster, places));
  }

  gemm_shape shape_;
  gemm_plan plan_;
  kernel_variant variant_;
  gemm_arguments arguments_{};
  scratch partials_;
};

gemm::gemm(const gemm_shape& shape) : gemm(shape, gemm_plans(shape, processors_here()).front()) {}
gemm::gemm(const gemm_shape& shape, const gemm_plan& plan)
    : launcher_(std::make_unique<launcher>(shape, plan)) {}
gemm::gemm(gemm&&) noexcept = default;
gemm& gemm::operator=(gemm&&) noexcept = default;
gemm::~gemm() = default;

void gemm::run(const void* a, const void* b, void* c, stream_ref stream) const {
  launcher_->run(a, b, c, static_cast<cudaStream_t>(stream.handle));
}

const gemm_plan& gemm::plan() const noexcept { return launcher_->plan(); }

}  // namespace untax::sm90
