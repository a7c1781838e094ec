#include "bench/suites/gpu_need.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/taxes/taxes_need.hpp"

namespace untax::bench {

memory_need need_of(const gemm_row& row, dtype type) {
  constexpr double rotated_bytes = 0x1p20 * 200;
  const auto size = static_cast<double>(size_of(type));
  const auto m = static_cast<double>(row.m);
  const auto n = static_cast<double>(row.n);
  const auto k = static_cast<double>(row.k);
  const double once = size * (m * k + n * k + m * n);
  const double places = std::clamp(rotated_bytes / once + 1, 2.0, 16.0);
  memory_need need;
  need.weights = places * size * n * k;
  need.activations = places * size * (m * k + m * n);
  return need;
}

memory_need need_of(const collective_suite_options& options) {
  constexpr double least_heap = 12 * 0x1p30;
  memory_need need;
  need.heaps = least_heap + 3 * static_cast<double>(std::ranges::max(options.sizes));
  return need;
}

void require_memory(const gemm_suite_options& options) {
  const memory_room room = room_on_gpus(1);
  for (const gemm_row& row : gemm_shapes(options)) {
    require_room(
        fmt::format("a GEMM of {} x {} x {}, {},", row.m, row.n, row.k, name_of(options.type)),
        need_of(row, options.type), room, {}, "a smaller --size fits");
  }
}

void require_memory(const overlap_options& options, int ranks) {
  ablation_options how;
  how.backend = memory_kind::cuda;
  how.ranks = ranks;
  std::vector<layer_operation> operations;
  for (const gemm_problem& p : options.problems) {
    operations.push_back({.name = "a shape",
                          .operator_name = options.operator_name,
                          .m = p.m,
                          .n = p.n,
                          .k = p.k,
                          .type = p.type,
                          .gather = p.gather});
  }
  require_room_for_all(how, operations, room_on_gpus(ranks));
}

void require_memory(const collective_suite_options& options, int ranks) {
  require_room(
      fmt::format("vectors of {} between {} GPUs, on each,",
                  memory_text(static_cast<double>(std::ranges::max(options.sizes))), ranks),
      need_of(options), room_on_gpus(ranks), {}, "a smaller --size fits");
}

void require_memory(const norm_suite_options& options, int ranks) {
  constexpr double copies = 5;  // residual, library results and references, of 2 bytes
  memory_need need;
  need.heaps = static_cast<double>(heap_for(options, ranks));
  need.work_space = copies * 2 * static_cast<double>(std::ranges::max(options.tokens)) *
                    static_cast<double>(std::ranges::max(options.hidden));
  require_room(
      fmt::format("{} of {} tokens of {} between {} GPUs, on each,", norm_fused,
                  std::ranges::max(options.tokens), std::ranges::max(options.hidden), ranks),
      need, room_on_gpus(ranks), {}, "fewer --tokens fit");
}

void require_memory(const attention_suite_options& options) {
  if (!attention_problems(options).empty()) return;
  throw error(errc::out_of_memory,
              "keys and values of every problem that is asked for take more memory than a GPU "
              "has; fewer --keys or --batch fit");
}

}  // namespace untax::bench
