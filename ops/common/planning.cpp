#include "ops/common/planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>

#include <untax/flow/device_control.hpp>

#include "ops/common/row_plans.hpp"

namespace untax {
namespace {

/// The most bytes of widened 16-bit weights that a worker keeps.
constexpr std::int64_t widened_bytes = std::int64_t{16} << 20;
/// The wait records of a rank, without its own one and those of kernels; each worker needs one.
constexpr int most_workers = first_kernel_slot - 1;

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void require_option(std::string_view operator_name, int rank, std::string_view what,
                    std::int64_t value, std::int64_t most) {
  if (value >= 0 && value <= most) return;
  throw error(
      errc::invalid_argument,
      fmt::format("rank {}: {}: option {} is {}; it has to be between 0 (untax chooses) and {}",
                  rank, operator_name, what, value, most));
}

/// Tiles, panels and counters have int numbers. A protocol has at most 8 counters for each tile of
/// each rank, or for each panel of a row of tiles.
void require_countable(std::string_view operator_name, const local_gemm& gemm,
                       const protocol_plan& plan) {
  const auto of = [](std::int64_t size, std::int64_t part) {
    return static_cast<double>(std::max<std::int64_t>(ceil_div(size, part), 1));
  };
  const double counted = of(gemm.rows, plan.tile_m) *
                         std::max(of(gemm.cols, plan.tile_n), of(gemm.depth, plan.panel_k)) *
                         plan.world * 8;
  if (counted <= std::numeric_limits<std::int32_t>::max()) return;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: tiles of {} x {} and panels of {} split {} x {} x {} into "
                          "too many; options tile_m, tile_n and panel_k have to be larger",
                          plan.rank, operator_name, plan.tile_m, plan.tile_n, plan.panel_k,
                          gemm.rows, gemm.cols, gemm.depth));
}

std::int64_t columns_of_tile(const local_gemm& gemm, int workers) {
  const std::int64_t share = round_up<std::int64_t>(ceil_div<std::int64_t>(gemm.cols, workers), 16);
  std::int64_t most = 2048;
  if (gemm.type != dtype::f32) {
    const std::int64_t fits = widened_bytes / (4 * std::max<std::int64_t>(gemm.depth, 1));
    most = std::clamp<std::int64_t>(fits / 64 * 64, 64, most);
  }
  return std::clamp<std::int64_t>(share, 1, most);
}

/// The plans for which `wanted` holds, and for which an operator has a kernel.
template <class Wanted>
std::vector<gpu::gemm_plan> compiled_of(std::span<const gpu::tile_config> kernels,
                                        const std::vector<gpu::gemm_plan>& plans,
                                        const Wanted& wanted) {
  std::vector<gpu::gemm_plan> compiled;
  for (const gpu::gemm_plan& plan : plans) {
    const auto config = compiled_for(kernels, plan.config);
    if (config && wanted(plan)) compiled.emplace_back(plan).config = *config;
  }
  return compiled;
}

}  // namespace

made_plan make_plan(const world& w, std::string_view operator_name, const local_gemm& gemm,
                    const operator_options& options) {
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  require_option(operator_name, w.rank(), "workers", options.workers, most_workers / 2);
  require_option(operator_name, w.rank(), "senders", options.senders, most_workers / 2);
  require_option(operator_name, w.rank(), "tile_m", options.tile_m, any);
  require_option(operator_name, w.rank(), "tile_n", options.tile_n, any);
  require_option(operator_name, w.rank(), "panel_k", options.panel_k, any);

  if (!on_host(options.how)) {
    throw error(errc::unsupported,
                fmt::format("rank {}: {}: {} is a pattern of GPUs; this world's ranks are threads "
                            "or processes of the host, which have {}",
                            w.rank(), operator_name, name_of(options.how),
                            "bulk_library, bulk_synchronous, producer_consumer, fused_sequential "
                            "and fused_specialized"));
  }
  made_plan result;
  protocol_plan& plan = result.plan;
  plan.world = w.size();
  plan.rank = w.rank();
  plan.how = options.how;
  plan.move = options.move;
  plan.workers =
      options.workers > 0 ? options.workers : std::clamp(cores() / w.size(), 1, most_workers / 2);
  plan.senders = options.senders > 0 ? options.senders : 1;
  const std::int64_t rows = std::max<std::int64_t>(gemm.rows, 1);
  plan.tile_m = std::min(rows, options.tile_m > 0 ? options.tile_m : 512);
  plan.tile_n = std::min(std::max<std::int64_t>(gemm.cols, 1),
                         options.tile_n > 0 ? options.tile_n : columns_of_tile(gemm, plan.workers));
  plan.panel_k = options.panel_k > 0 ? options.panel_k : 2048;
  require_countable(operator_name, gemm, plan);

  std::string why = "as asked";
  if (options.how == pattern::automatic) {
    const bool spare_cores = cores() > plan.workers * w.size();
    plan.how = spare_cores ? pattern::fused_specialized : pattern::fused_sequential;
    why = fmt::format(
        "chosen because {} cores {} for {} ranks of {} computing workers with senders beside them",
        cores(), spare_cores ? "are enough" : "are too few", w.size(), plan.workers);
  }
  result.explanation =
      fmt::format("{}: {} ({}), {} workers{}, tiles of {} x {}", operator_name, name_of(plan.how),
                  why, plan.workers,
                  plan.how == pattern::fused_sequential
                      ? ""
                      : fmt::format(" and {} senders, {}", plan.senders, name_of(plan.move)),
                  plan.tile_m, plan.tile_n);
  if (options.invariant) result.explanation += ", rows of the same bits in every batch";
  return result;
}

protocol_plan plan_for_device(const world& w, const operator_options& options) {
  return {.world = w.size(),
          .rank = w.rank(),
          .how = options.how,
          .move = options.move,
          .workers = options.workers,
          .senders = options.senders,
          .tile_m = options.tile_m,
          .tile_n = options.tile_n,
          .panel_k = options.panel_k};
}

std::optional<gpu::tile_config> compiled_for(std::span<const gpu::tile_config> kernels,
                                             const gpu::tile_config& planned) {
  const auto found = std::ranges::find_if(kernels, [&](gpu::tile_config kernel) {
    kernel.stages = planned.stages;
    kernel.epilogue_buffers = planned.epilogue_buffers;
    return kernel == planned;
  });
  return found == kernels.end() ? std::nullopt : std::optional(*found);
}

std::vector<gpu::gemm_plan> compiled_plans(std::span<const gpu::tile_config> kernels,
                                           const gpu::gemm_shape& shape, int blocks) {
  return compiled_of(kernels, gpu::gemm_plans(shape, blocks),
                     [](const gpu::gemm_plan& p) { return !gpu::rereads_weights(p); });
}

std::vector<gpu::gemm_plan> plans_with_wide_tiles(std::span<const gpu::tile_config> kernels,
                                                  const gpu::gemm_shape& shape,
                                                  const gpu::gpu_model& gpu,
                                                  const gpu::register_shares& shares) {
  constexpr int few_rows = 128;
  const bool few = shape.m <= few_rows;
  const auto is_wide = [](const gpu::gemm_plan& p) {
    return p.config.swap_ab && p.config.block_n > few_rows;
  };
  auto plans = compiled_of(
      kernels, few ? gpu::gemm_plans(shape, gpu.num_sms) : gpu::plans_by_model(shape, gpu),
      [&](const gpu::gemm_plan& p) {
        if (p.schedule.range_k_blocks > 0 && !adds_ranges(p.config, shares)) return false;
        return is_wide(p) ? !few : !gpu::rereads_weights(p);
      });
  // The factor by which wide tiles take longer beside transfers, measured between two H100: for
  // blocks that read their operands alone, and for clusters that share their reads.
  constexpr double longer_alone = 1.1;
  constexpr double longer_together = 1.05;
  for (gpu::gemm_plan& p : plans)
    if (is_wide(p)) p.cycles *= p.config.cluster > 1 ? longer_together : longer_alone;
  std::ranges::stable_sort(plans, {}, &gpu::gemm_plan::cycles);
  return plans;
}

void require_size(std::string_view operator_name, int rank, std::string_view what,
                  std::int64_t value) {
  if (value >= 1 && value <= std::numeric_limits<std::int32_t>::max()) return;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: {} is {}; it has to be between 1 and {}", rank,
                          operator_name, what, value, std::numeric_limits<std::int32_t>::max()));
}

void require_sizes(std::string_view operator_name, int rank, std::int64_t m, std::int64_t n,
                   std::int64_t k) {
  require_size(operator_name, rank, "m", m);
  require_size(operator_name, rank, "n", n);
  require_size(operator_name, rank, "k", k);
}

void require_phases(std::string_view operator_name, int rank, int phases) {
  if (phases >= 0 && phases <= 2) return;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: option phases is {}; it has to be between 0 (untax "
                          "chooses) and 2",
                          rank, operator_name, phases));
}

std::string asked_for(const std::string& problem, const operator_options& options) {
  return options.invariant ? problem + ", invariant" : problem;
}

void refuse_invariant(std::string_view operator_name, int rank, const operator_options& options) {
  if (!options.invariant) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: {}: bulk_library on GPUs has no option invariant, since its "
                          "library orders sums by the number of rows; patterns with untax's own "
                          "kernels have it, such as fused_specialized",
                          rank, operator_name));
}

host::engine_options host_options(std::string_view operator_name, dtype type, dtype partials,
                                  const operator_options& options) {
  return {.operator_name = std::string(operator_name),
          .inbox_type = partials,
          .outbox_type = partials,
          .launch = options.launch,
          .faults = options.faults,
          .operand_type = type,
          .in_order = options.invariant};
}

void agree_on_plan(world& w, std::string_view operator_name, const std::string& asked,
                   const protocol_plan& plan) {
  w.agree(operator_name,
          fmt::format("{}, {}, {}, {} workers, {} senders, tile {} x {}, panel {}, "
                      "phases {}",
                      asked, name_of(plan.how), name_of(plan.move), plan.workers, plan.senders,
                      plan.tile_m, plan.tile_n, plan.panel_k, plan.phases));
}

}  // namespace untax
