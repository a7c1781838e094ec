#include "engines/gpu/flash_attention/kernel.cuh"

namespace untax::gpu {

flash_kernel flash_attention_of_width_64(dtype type, bool causal) {
  return flash_kernel_of_width<64>(type, causal);
}

}  // namespace untax::gpu
