#include "engines/gpu/attention/kernel.cuh"

namespace untax::gpu {

attention_kernel attention_of_width_256(dtype type, bool paged, bool fixed_parts) {
  return kernel_of_width<256>(type, paged, fixed_parts);
}

}  // namespace untax::gpu
