#include <algorithm>
#include <functional>
#include <vector>

#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/gemm/cta_reads.hpp"
#include "engines/timing/reader.hpp"
#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/all_gather_gemm/gathered_product.hpp"
#include "ops/gemm_all_scatter/device_schedule.hpp"
#include "ops/gemm_reduce_common/device_schedule.hpp"
#include "ops/timing/predictor.hpp"

namespace untax {
namespace {

using schedule::lane_work;
using timing::signal_way;
using timing::step_costs;

/// Partial results have the type of A, as in `untax taxes`.
constexpr dtype type = dtype::bf16;
/// The share of time of rows that are only read to be added. (Words are also reset.)
constexpr double only_reads = 0.5;
/// A warp of a CTA that only adds takes the words of a rank for this many elements at a time: for
/// four fragments of 16 x 8. It polls for the words, resets them and adds them, one after the
/// other.
constexpr std::int64_t words_together = 4 * 16 * 8;
/// Seconds for these elements, measured with two H200: the time of gemm_reduce_scatter by
/// producer_consumer (ops/choice/tables/h200-2.json), from 1 to 8192 rows, less the part of its
/// GEMM that is not hidden.
constexpr double seconds_of_words = 1.5e-6;
/// Warps of a block that send, if all warps that do not multiply send.
constexpr int warps_that_send = 4;
/// Multiprocessors that a GEMM loses beside copy engines, which read the same memory.
constexpr int beside_copies = 2;

/// Simulates the lanes that the planned operators of all ranks have: what `untax check --gpu`
/// proves. `model_of(rank)` is such an operator, as in `plan_check::check`.
template <class ModelOf>
predicted run(const predictor& p, int ranks, const ModelOf& model_of,
              const std::function<step_costs(lane_work, int)>& costs_of) {
  std::vector<decltype(model_of(0))> models;
  models.reserve(static_cast<std::size_t>(ranks));
  device_schedule lanes;
  for (int rank = 0; rank < ranks; ++rank)
    lanes.push_back(models.emplace_back(model_of(rank)).lanes());
  return p.run(timing::read_lanes(lanes, costs_of));
}

/// Costs of the CTAs of a GEMM. Their epilogues move data while the CTAs go on multiplying.
step_costs multiplying(const gpu::gemm_plan& plan, double seconds, double launch) {
  step_costs costs;
  costs.launch = launch;
  costs.k_seconds = k_seconds_of(plan, seconds);
  costs.detached = true;
  return costs;
}

double seconds_of_gather(predictor& p, const gather_plan& plan,
                         const all_gather_gemm_problem& problem, pattern how) {
  const auto parts = static_cast<std::int64_t>(plan.sources.size());
  const gpu::gemm_shape shape{
      plan.segment_rows > 0 ? parts * plan.segment_rows : problem.m, problem.n,
      problem.gather == gather_axis::rows ? problem.k
                                          : parts * plan.segment_k_blocks * gpu::block_k,
      type};
  const int beside = plan.comm_ctas + (how == pattern::producer_consumer ? plan.own_grid : 0);
  return p.seconds_beside(plan.gemm, shape, {problem.m, problem.n, problem.k, type}, beside);
}

/// Costs of the senders of A: copy engines, threads that store packets, or warps that issue TMA
/// copies.
step_costs sending(const predictor& p, const gather_plan& plan) {
  const timing::machine_numbers& n = p.numbers();
  step_costs costs;
  costs.launch = plan.who == gather_senders::all_ctas_first ? 0 : n.start;
  costs.move_pace = n.block_rate;
  costs.way = plan.packets ? signal_way::inside : signal_way::released;
  costs.bytes_on_wire = plan.packets ? 2 : 1;
  costs.detached = plan.packets;
  costs.posted = plan.tma_tiles || plan.streams > 0;
  if (plan.streams > 0) {
    costs.move_pace = 0;
    // A signal to a peer is a copy of 8 bytes, on another stream but by the same engine.
    costs.begin_after = costs.signal_after = n.copy_start;
  } else if (!plan.tma_tiles && (plan.comm_ctas + plan.own_grid) > 0) {
    costs.move_pace /= gpu::sender_warps;
  } else if (plan.who == gather_senders::epilogue_warps && plan.rate_limit > 0) {
    costs.rate = plan.rate_limit * 1e9;
  } else if (plan.who == gather_senders::all_ctas_first) {
    costs.move_pace /= warps_that_send;
  }
  return costs;
}

/// cuBLASLt after NCCL. Data that was gathered by columns is laid out in rows.
double gather_by_library(predictor& p, const timed_case& c) {
  const timing::machine_numbers& n = p.numbers();
  const double bytes = timed_element_bytes * static_cast<double>(c.m) * static_cast<double>(c.k);
  const double between = c.by.ends_with("eager") ? n.launch_eager : n.launch_graph;
  const bool turned = c.gather == gather_axis::k;
  const double seconds = p.library_collective("all_gather", c.ranks, bytes) + between +
                         p.gemm_alone({c.m, c.n, c.k}, true) +
                         (turned ? between + 2 * bytes / n.memory_rate : 0);
  if (!c.by.ends_with("eager")) return seconds;
  return p.launched_by_host(seconds + n.launch_eager, turned ? 1 : 0);
}

/// The quickest product after untax's all_gather.
predicted gather_then_product(predictor& p, const timed_case& c) {
  const double bytes = timed_element_bytes * static_cast<double>(c.m) * static_cast<double>(c.k);
  predicted whole;
  if (c.ranks > 1) {
    whole = p.predict({.op = "all_gather", .by = "untax direct", .ranks = c.ranks, .bytes = bytes});
    whole.seconds += p.numbers().launch_graph;
  }
  const gpu::gemm_shape shape{c.m, c.n, c.k};
  whole.seconds += std::min(p.gemm_alone(shape, false), p.gemm_alone(shape, true));
  whole.simulated = whole.seconds;
  return whole;
}

/// NCCL after cuBLASLt. Data that was gathered by ranks is laid out in rows.
double scatter_by_library(predictor& p, const timed_case& c) {
  const timing::machine_numbers& n = p.numbers();
  const double bytes = timed_element_bytes * static_cast<double>(c.m) * static_cast<double>(c.n);
  const bool eager = c.by.ends_with("eager");
  const std::int64_t columns = sharding{c.n, c.ranks, shard_granularity}.full();
  const double seconds = p.gemm_alone({c.m, columns, c.k}, true) +
                         p.library_collective("all_gather", c.ranks, bytes) +
                         2 * (eager ? n.launch_eager : n.launch_graph) + 2 * bytes / n.memory_rate;
  return eager ? p.launched_by_host(seconds, 1) : seconds;
}

/// NCCL after cuBLASLt. If the number of rows is no multiple of the ranks, rows are handed over by
/// a copy.
double sum_by_library(predictor& p, const timed_case& c, bool everywhere) {
  const timing::machine_numbers& n = p.numbers();
  const double between = c.by.ends_with("eager") ? n.launch_eager : n.launch_graph;
  const double bytes = timed_element_bytes * static_cast<double>(c.m) * static_cast<double>(c.n);
  const bool copied = !everywhere && c.m % c.ranks != 0;
  const double seconds =
      p.gemm_alone({c.m, c.n, sharding{c.k, c.ranks, shard_granularity}.full()}, true) + between +
      p.library_collective(everywhere ? "all_reduce" : "reduce_scatter", c.ranks, bytes) +
      (copied ? between + 2 * bytes / c.ranks / n.memory_rate : 0);
  if (!c.by.ends_with("eager")) return seconds;
  return p.launched_by_host(seconds + n.launch_eager, copied ? 1 : 0);
}

/// The quickest product, and untax's sum over ranks behind it.
predicted product_then_sum(predictor& p, const timed_case& c, bool everywhere) {
  const double bytes = timed_element_bytes * static_cast<double>(c.m) * static_cast<double>(c.n);
  predicted whole = p.predict({.op = everywhere ? "all_reduce" : "reduce_scatter",
                               .by = "untax direct",
                               .ranks = c.ranks,
                               .bytes = bytes});
  const gpu::gemm_shape shape{c.m, c.n, sharding{c.k, c.ranks, shard_granularity}.full()};
  whole.seconds +=
      p.numbers().launch_graph + std::min(p.gemm_alone(shape, false), p.gemm_alone(shape, true));
  whole.simulated = whole.seconds;
  return whole;
}

/// A prediction in which nothing is simulated.
predicted sum_of_parts(double seconds) { return {seconds, seconds, {}}; }

gpu::gemm_shape part_of(const device_sum& sum, int ranks) {
  return {sum.m, sum.n, sharding{sum.k, ranks, shard_granularity}.full(), sum.type};
}

/// Words, which carry their own signal: CTAs store partial results at the owners of their rows, and
/// separate CTAs, or the same ones, add them there.
predicted simulate_words(predictor& p, const device_sum& sum, int ranks, pattern how) {
  const timing::machine_numbers& n = p.numbers();
  const auto plan_of = [&](int rank) {
    return sums_plans(sum, ranks, rank, {.how = how}, {p.processors()}).front();
  };
  const sums_plan plan = plan_of(0);
  const gpu::gemm_shape shape = part_of(sum, ranks);
  const double seconds =
      p.seconds_beside(plan.gemm, shape, shape, plan.beside ? plan.own_grid : plan.comm_ctas);
  step_costs gemm = multiplying(plan.gemm, seconds, plan.beside ? n.launch_graph : 0);
  gemm.way = signal_way::inside;
  step_costs add;
  add.launch = plan.beside ? n.start : 0;
  add.move_pace = n.block_rate;
  add.way = signal_way::inside;
  if (plan.beside || plan.comm_ctas > 0) {
    constexpr int warps = gpu::block_threads / 32;
    add.added_together = words_together;
    add.add_seconds = seconds_of_words / warps;
  } else {
    add.local_pace = n.block_rate;
  }
  return run(
      p, ranks, [&](int rank) { return sums_model(sum, plan_of(rank)); },
      [&](lane_work work, int) {
        return work == lane_work::multiplies ? gemm : work == lane_work::adds ? add : step_costs{};
      });
}

/// Rows: CTAs store tiles at the owners of their rows, and add their own tiles. A tile is added as
/// soon as it is multiplied if the tiles of peers have landed; the last tiles are added at the end.
/// Or a kernel that follows adds.
predicted simulate_rows(predictor& p, const device_sum& sum, int ranks) {
  const timing::machine_numbers& n = p.numbers();
  const auto plan_of = [&](int rank) {
    return row_sums_plans(sum, ranks, rank, {.how = pattern::fused_warp_specialized},
                          {p.processors()})
        .front();
  };
  const row_sums_plan plan = plan_of(0);
  const gpu::gemm_shape shape = part_of(sum, ranks);
  step_costs gemm = multiplying(plan.gemm, p.seconds_beside(plan.gemm, shape, shape, 0), 0);
  gemm.local_pace = n.block_rate;
  gemm.added_bytes = only_reads;
  step_costs add;
  add.launch = n.launch_graph;
  add.move_pace = add.local_pace = n.block_rate;
  add.added_bytes = only_reads;
  return run(
      p, ranks,
      [&](int rank) {
        row_sums_model model(sum, plan_of(rank));
        model.in_time = true;
        return model;
      },
      [&](lane_work work, int) { return work == lane_work::multiplies ? gemm : add; });
}

}  // namespace

double k_seconds_of(const gpu::gemm_plan& plan, double seconds) {
  int most = 1;
  for (int cta = 0; cta < plan.blocks(); ++cta) {
    int k_blocks = 0;
    gpu::each_read(plan, cta,
                   [&](const gpu::cta_read& read) { k_blocks += read.end - read.begin; });
    most = std::max(most, k_blocks);
  }
  return seconds / most / gpu::block_k;
}

predicted simulate_gather(predictor& p, const timed_case& c) {
  if (c.by.starts_with("bulk_library")) return sum_of_parts(gather_by_library(p, c));
  const timing::machine_numbers& n = p.numbers();
  const all_gather_gemm_problem problem{c.m, c.n, c.k, type, c.gather};
  const pattern how = pattern_of(c.by);
  if (how == pattern::bulk_synchronous && may_gather_first(problem, {.how = how}))
    return gather_then_product(p, c);
  const auto plan_of = [&](int rank) {
    return gather_plans(problem, c.ranks, rank,
                        {.how = how, .constant_weights = how != pattern::bulk_synchronous},
                        p.processors())
        .front();
  };
  const gather_plan plan = plan_of(0);
  const bool apart = plan.streams + plan.own_grid > 0;
  const step_costs gemm =
      multiplying(plan.gemm, seconds_of_gather(p, plan, problem, how), apart ? n.launch_graph : 0);
  const step_costs send = sending(p, plan);
  return run(
      p, c.ranks, [&](int rank) { return plan_check::gather_model(problem, plan_of(rank)); },
      [&](lane_work work, int kernel) {
        if (work == lane_work::multiplies) return gemm;
        step_costs costs = send;
        // Copies within the GPU come before those to peers, as a part of the same launch.
        if (plan.streams > 0 && kernel == 0) costs.launch = 0;
        return costs;
      });
}

predicted simulate_scatter(predictor& p, const timed_case& c) {
  if (c.by.starts_with("bulk_library")) return sum_of_parts(scatter_by_library(p, c));
  const timing::machine_numbers& n = p.numbers();
  const gemm_all_scatter_problem problem{c.m, c.n, c.k, type};
  const pattern how = pattern_of(c.by);
  const auto plan_of = [&](int rank) {
    return scatter_plans(problem, c.ranks, rank,
                         {.how = how, .constant_weights = how != pattern::bulk_synchronous},
                         {p.processors()})
        .front();
  };
  const scatter_plan plan = plan_of(0);
  const std::int64_t columns = sharding{c.n, c.ranks, shard_granularity}.full();
  const int beside = plan.comm_ctas + (how == pattern::producer_consumer ? plan.own_grid : 0) +
                     (plan.streams > 0 ? beside_copies : 0);
  const double seconds =
      p.seconds_beside(plan.gemm, {plan.row_splits > 1 ? plan.split_rows : c.m, columns, c.k, type},
                       {c.m, columns, c.k, type}, beside);
  const step_costs gemm = multiplying(plan.gemm, seconds, 0);
  step_costs send;
  if (plan.streams > 0) {
    send.begin_after = n.copy_start;
  } else {
    send.launch = plan.way == scatter_way::local_only ? n.launch_graph : n.start;
    send.move_pace = n.block_rate;
    send.posted = true;
  }
  return run(
      p, c.ranks, [&](int rank) { return plan_check::scatter_model(problem, plan_of(rank)); },
      [&](lane_work work, int kernel) {
        if (work == lane_work::sends) return send;
        if (work == lane_work::meets) return step_costs{};
        step_costs costs = gemm;
        // Kernels of further row splits follow the first one, which has number 1.
        if (plan.streams > 0 && kernel > 1) costs.begin = n.launch_graph;
        return costs;
      });
}

predicted simulate_sums(predictor& p, const timed_case& c) {
  const operator_entry& entry = operator_named(c.op);
  const bool everywhere = entry.phases != nullptr;
  if (c.by.starts_with("bulk_library")) return sum_of_parts(sum_by_library(p, c, everywhere));
  if (c.by == "bulk_synchronous" && c.ranks > 1) return product_then_sum(p, c, everywhere);
  device_sum sum{
      .operator_name = entry.name, .m = c.m, .n = c.n, .k = c.k, .type = type, .partials = type};
  if (everywhere) {
    sum.target = reduce_target::everywhere;
    sum.phases = entry.phases({.m = c.m, .n = c.n, .k = c.k, .type = type, .partials = type},
                              c.ranks, memory_kind::cuda);
  }
  const pattern how = pattern_of(c.by);
  if (how == pattern::fused_warp_specialized) return simulate_rows(p, sum, c.ranks);
  return simulate_words(p, sum, c.ranks, how);
}

}  // namespace untax
