#include "src/symmetric/device_memory.hpp"

#include <optional>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arenas.hpp"
#include "share.hpp"
#include "shared_streams.hpp"

namespace untax {
namespace {

using gpu::cuda_share;
using gpu::id_of;

bool can_reach(int device, int other) {
  int can = 0;
  gpu::require(cudaDeviceCanAccessPeer(&can, device, other),
               fmt::format("GPU {} and GPU {}", device, other));
  return can != 0;
}

constexpr const char* no_peer_access =
    "cudaDeviceCanAccessPeer says no. Worlds of GPUs need peer-to-peer access between all of them, "
    "over NVLink or PCIe; `nvidia-smi topo -p2p rw` shows which have it";

// A text for errors: why `device` may be unable to reach the device `id`, or which process that
// device belongs to.
std::string whereabouts(int device, const device_id& id) {
  for (int other = 0; other < visible_devices(); ++other) {
    if (id_of(other) != id) continue;
    if (device != other && !can_reach(device, other)) return no_peer_access;
    return fmt::format("it is GPU {} of this process", other);
  }
  return "its GPU is not visible to this process (CUDA_VISIBLE_DEVICES), so more is not known";
}

}  // namespace

int visible_devices() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  int driver = 0;
  const bool no_driver = cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0;
  throw error(errc::unsupported,
              fmt::format("no GPU can be used here: {}",
                          no_driver ? "there is no NVIDIA driver" : gpu::text_of(result)));
}

std::string device_name(int device) {
  cudaDeviceProp properties{};
  gpu::require(cudaGetDeviceProperties(&properties, device), fmt::format("GPU {}", device));
  return fmt::format("{} (sm_{}{})", properties.name, properties.major, properties.minor);
}

std::size_t device_page(int device) {
  int supported = 0;
  gpu::require(gpu::driver().attribute(
                   &supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
               fmt::format("GPU {}", device));
  if (supported == 0) {
    throw error(
        errc::unsupported,
        fmt::format("GPU {}, {}, has no virtual memory management, which symmetric heaps need",
                    device, device_name(device)));
  }
  const CUmemAllocationProp how = gpu::properties(device, true);
  std::size_t page = 0;
  gpu::require(gpu::driver().granularity(&page, &how, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
               fmt::format("GPU {}", device));
  return page;
}

segment_layout device_layout(int ranks, std::size_t control_bytes, std::size_t first_bytes,
                             std::size_t most_bytes, int device) {
  return {ranks, control_bytes, most_bytes, memory_kind::cuda, device_page(device), first_bytes};
}

void use_device(int device) { gpu::require(cudaSetDevice(device), fmt::format("GPU {}", device)); }

void share_device_streams() noexcept { gpu::share_streams(); }

std::unique_ptr<device_share> device_share::make(int rank, int device, std::size_t bytes,
                                                 bool shared) {
  return std::make_unique<cuda_share>(rank, device, bytes, shared);
}

std::unique_ptr<device_arenas> arenas_of_this_process(const segment& memory,
                                                      const std::vector<int>& devices) {
  const int ranks = memory.ranks();
  const auto device_of = [&](int rank) { return devices[static_cast<std::size_t>(rank)]; };
  for (int rank = 0; rank < ranks; ++rank) {
    for (int peer = 0; peer < ranks; ++peer) {
      const int device = device_of(rank);
      const int other = device_of(peer);
      if (device == other || can_reach(device, other)) continue;
      throw error(
          errc::unsupported,
          fmt::format("rank {} (GPU {}, {}) cannot reach the memory of rank {} (GPU {}, {}): {}",
                      rank, device, device_name(device), peer, other, device_name(other),
                      no_peer_access));
    }
  }
  std::vector<gpu::allocation> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(
        gpu::allocation::make(rank, device_of(rank), memory.layout().first_span(), false));
  }
  const std::vector<std::string> where(devices.size(), "peer access was promised");
  return std::make_unique<gpu::arenas>(memory, devices, parts, where);
}

std::unique_ptr<device_arenas> arenas_of_processes(const segment& memory, int rank, int device,
                                                   std::unique_ptr<device_share> mine,
                                                   const device_shares& shares) {
  const auto ranks = static_cast<std::size_t>(memory.ranks());
  const auto self = static_cast<std::size_t>(rank);
  std::vector<int> devices(ranks, -1);
  devices[self] = device;
  std::vector<gpu::allocation> parts;
  std::vector<std::string> where;
  for (std::size_t r = 0; r < ranks; ++r) {
    where.push_back(whereabouts(device, shares.ids[r]));
    parts.push_back(r == self
                        ? static_cast<cuda_share&>(*mine).take()
                        : gpu::allocation::import(static_cast<int>(r), shares.descriptors[r]));
  }
  return std::make_unique<gpu::arenas>(memory, devices, parts, where);
}

}  // namespace untax
