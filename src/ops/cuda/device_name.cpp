#include "ops/choice/measured_on.hpp"

#include <cuda_runtime_api.h>

#include "src/symmetric/cuda/driver.hpp"

namespace untax {

std::string device_name_here() {
  int device = 0;
  gpu::require(cudaGetDevice(&device), "cannot read the current device");
  cudaDeviceProp properties{};
  gpu::require(cudaGetDeviceProperties(&properties, device),
               "cannot read the properties of a device");
  return properties.name;
}

}  // namespace untax
