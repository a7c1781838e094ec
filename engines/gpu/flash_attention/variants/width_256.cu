#include "engines/gpu/flash_attention/kernel.cuh"

namespace untax::gpu {

flash_kernel flash_attention_of_width_256(dtype type, bool causal) {
  return flash_kernel_of_width<256>(type, causal);
}

}  // namespace untax::gpu
