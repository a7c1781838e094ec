#include "engines/gpu/attention/kernel.cuh"

namespace untax::gpu {

attention_kernel attention_of_width_128(dtype type, bool paged, bool fixed_parts) {
  return kernel_of_width<128>(type, paged, fixed_parts);
}

}  // namespace untax::gpu
