#pragma once

#include <untax/flow/device_barrier.cuh>
#include <untax/flow/device_packet.cuh>
#include <untax/flow/device_wait.cuh>
#include <untax/rma/bulk_copy.cuh>
#include <untax/rma/device_signal.cuh>

namespace untax {

/// A world as kernels see it, passed by value: `kernel<<<...>>>(device_world(w.device_state()))`.
/// The world of the host has to outlive the kernel.
class device_world {
 public:
  /// `state` is `world::device_state()`.
  explicit device_world(const device_control& state) noexcept : control_(state) {}

  [[nodiscard]] __host__ __device__ int rank() const noexcept { return control_.rank; }
  [[nodiscard]] __host__ __device__ int size() const noexcept { return control_.ranks; }
  [[nodiscard]] __host__ __device__ const device_control& control() const noexcept {
    return control_;
  }

  /// Groups that can wait. `slot` distinguishes groups that wait at the same time in the kernels of
  /// a rank; for a block it is normally the number of the block.
  [[nodiscard]] __device__ waiting<device_block> block(int slot = block_number()) const noexcept {
    return {control_, slot};
  }
  [[nodiscard]] __device__ waiting<device_warp> warp(int slot) const noexcept {
    return {control_, slot};
  }
  [[nodiscard]] __device__ waiting<device_thread> thread(int slot) const noexcept {
    return {control_, slot};
  }

 private:
  [[nodiscard]] __device__ static int block_number() noexcept {
    return static_cast<int>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  }

  device_control control_;
};

}  // namespace untax
