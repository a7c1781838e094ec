#include "src/taxes/gpu_refusal.hpp"

#include <fmt/format.h>

#include "engines/gpu/attention/shape.hpp"
#include "ops/common/registry.hpp"
#include "src/taxes/backends.hpp"

namespace untax {

std::optional<std::string> gpu_refusal(const layer_operation& op, int ranks) {
  if (op.type == dtype::f32)
    return "the kernels of GPUs multiply elements of 16 bits, and these are fp32";
  if (is_attention(op)) {
    const auto& [heads, kv_heads, width] = op.attention;
    if (gpu::has_kernel_for(width) && heads <= gpu::most_heads_of_group * kv_heads &&
        ranks <= gpu::most_attention_ranks)
      return std::nullopt;
    return fmt::format("attention on GPUs has no kernel for {} / {} heads of {} elements, {} ranks",
                       heads, kv_heads, width, ranks);
  }
  if (operator_named(op.operator_name).on_gpus) return std::nullopt;
  return fmt::format("{} runs on the host only, so far", op.operator_name);
}

}  // namespace untax
