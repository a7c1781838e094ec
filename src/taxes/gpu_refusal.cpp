#include "src/taxes/gpu_refusal.hpp"

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>

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

void refuse_shared_gpus() {
  constexpr int most_sharing = 8;
  const auto sharing = environment().number_or_fallback(variable::ranks_per_gpu, 1, most_sharing);
  if (sharing == 1) return;
  throw error(
      errc::unsupported,
      fmt::format("{} is {}, so ranks would share GPUs, and shared GPUs give no honest times: "
                  "kernels of one rank take multiprocessors from the others, and nothing "
                  "crosses a link; unset it where there is a GPU for each rank",
                  variable::ranks_per_gpu.name, sharing));
}

}  // namespace untax
