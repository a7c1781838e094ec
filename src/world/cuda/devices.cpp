#include <untax/world/devices.hpp>

#include <array>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "links.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/device_memory.hpp"

namespace untax {
namespace {

std::string cuda_version(int number) {
  return fmt::format("CUDA {}.{}", number / 1000, number % 1000 / 10);
}

bool has(int device, CUdevice_attribute what) {
  int value = 0;
  gpu::require(gpu::driver().attribute(&value, what, device), fmt::format("GPU {}", device));
  return value != 0;
}

device_facts facts_of(int device) {
  const std::string who = fmt::format("GPU {}", device);
  cudaDeviceProp p{};
  gpu::require(cudaGetDeviceProperties(&p, device), who);
  std::array<char, 32> bus{};
  gpu::require(cudaDeviceGetPCIBusId(bus.data(), bus.size(), device), who);
  device_facts f;
  f.name = p.name;
  f.bus = bus.data();
  f.major = p.major;
  f.minor = p.minor;
  f.multiprocessors = p.multiProcessorCount;
  f.l2_bytes = static_cast<std::size_t>(p.l2CacheSize);
  f.virtual_memory = has(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  f.descriptors = has(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  f.multicast = has(device, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
  const gpu::device_scope scope(gpu::context_of(device));
  gpu::require(cudaMemGetInfo(&f.memory_free, &f.memory_bytes), who);
  return f;
}

peer_facts between(int device, int other) {
  peer_facts f;
  if (device == other) return f;
  const std::string who = fmt::format("GPU {} and GPU {}", device, other);
  int value = 0;
  gpu::require(cudaDeviceCanAccessPeer(&value, device, other), who);
  f.access = value != 0;
  gpu::require(
      cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, device, other), who);
  f.atomics = value != 0;
  return f;
}

void look(device_survey& survey) {
  const int count = visible_devices();
  std::vector<std::string> buses;
  for (int device = 0; device < count; ++device) {
    survey.devices.push_back(facts_of(device));
    buses.push_back(survey.devices.back().bus);
    survey.peers.emplace_back();
    for (int other = 0; other < count; ++other)
      survey.peers.back().push_back(between(device, other));
  }
  const gpu::management_facts more = gpu::ask_management(buses);
  for (std::size_t i = 0; i < buses.size(); ++i) survey.devices[i].links = more.links[i];
  int driver = 0;
  int runtime = 0;
  gpu::require(cudaDriverGetVersion(&driver), "cannot read the version of the CUDA driver");
  gpu::require(cudaRuntimeGetVersion(&runtime), "cannot read the version of the CUDA runtime");
  survey.driver =
      fmt::format("{}for {}", more.driver.empty() ? "" : more.driver + ", ", cuda_version(driver));
  survey.runtime = cuda_version(runtime);
}

// Whether a world of all these devices can be made and can run untax's kernels.
bool measurable(const device_survey& survey) {
  bool complete = survey.devices.size() > 1;
  for (std::size_t i = 0; i < survey.devices.size(); ++i) {
    const device_facts& d = survey.devices[i];
    complete = complete && d.major == 9 && d.minor == 0 && d.virtual_memory;
    for (std::size_t other = 0; other < survey.devices.size(); ++other)
      complete = complete && (other == i || survey.peers[i][other].access);
  }
  return complete;
}

}  // namespace

device_survey survey_devices(bool measure) {
  device_survey survey;
  try {
    look(survey);
  } catch (const error& e) {
    survey.problem = e.what();
    return survey;
  }
  if (!measure || !measurable(survey)) return survey;
  try {
    gpu::measure_links(survey.peers);
  } catch (const error& e) {
    survey.measuring_problem = e.what();
  }
  return survey;
}

}  // namespace untax
