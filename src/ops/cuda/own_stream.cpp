#include "ops/common/own_stream.hpp"
#include "ops/common/device_arguments.hpp"

#include <cuda_runtime_api.h>

#include <string>

#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax {
namespace {

cudaStream_t of(stream_ref stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace

own_stream::own_stream() {
  const auto result = gpu::stream_for(gpu::stream_use::own);
  stream_ = result.get();
  kept_ = result;
}

stream_ref own_stream::unless(stream_ref given) const {
  if (given.handle != nullptr) return given;
  gpu::follow_default(of(stream_));
  return stream_;
}

void wait_for(stream_ref stream, std::string_view what) {
  gpu::require(cudaStreamSynchronize(of(stream)), std::string(what));
}

bool is_captured(stream_ref stream) { return gpu::captures(of(stream)); }

bool reachable_by_device(const void* p) {
  cudaPointerAttributes result{};
  gpu::require(cudaPointerGetAttributes(&result, p), "cannot read where an address lies");
  return result.type != cudaMemoryTypeUnregistered;
}

std::uint64_t allocation_at(const void* p) {
  std::uint64_t match = 0;
  const CUresult result = gpu::driver().pointer_attribute(
      &match, CU_POINTER_ATTRIBUTE_BUFFER_ID,
      reinterpret_cast<CUdeviceptr>(p));  // NOLINT(*-reinterpret-cast): an address as CUDA wants it
  return result == CUDA_SUCCESS ? match : 0;
}

void wait_for_device(const world& w) noexcept {
  if (cudaSetDevice(w.device()) == cudaSuccess) (void)cudaDeviceSynchronize();
}

}  // namespace untax
