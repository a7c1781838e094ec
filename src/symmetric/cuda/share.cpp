#include "share.hpp"

#include <unistd.h>

#include <cstring>

#include <fmt/format.h>

namespace untax::gpu {

device_id id_of(int device) {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, device), fmt::format("GPU {}", device));
  device_id id{};
  static_assert(sizeof id == sizeof properties.uuid);
  std::memcpy(id.data(), &properties.uuid, sizeof id);
  return id;
}

cuda_share::cuda_share(int rank, int device, std::size_t bytes, bool shared)
    : memory_(allocation::make(rank, device, bytes, shared)), id_(id_of(device)) {
  if (!shared) return;
  require(driver().export_handle(&descriptor_, memory_.handle(),
                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          fmt::format("rank {}: cannot share memory of GPU {} with other processes", rank, device));
}

cuda_share::~cuda_share() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace untax::gpu
