#include <algorithm>
#include <vector>

#include <untax/tile/program.hpp>
#include <untax/tile/shard.hpp>

#include "engines/timing/reader.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/timing/predictor.hpp"

namespace untax {
namespace {

using timing::signal_way;

constexpr std::uint64_t epoch = 1;
/// The most pairs of ranks and workers that exchange chunks, over all ranks. If there are more, a
/// worker of the simulation stands for several: its time and memory grow with their number.
constexpr double most_ways = 2e6;

/// Packets have no programs: each block has a share of every message. So they are read as programs
/// with rooms and a chunk for each block.
collective_plan by_blocks(collective_plan plan) {
  plan.wire = wire_kind::stores;
  plan.chunk = std::max<std::int64_t>(ceil_div<std::int64_t>(plan.chunk, plan.workers), 1);
  return plan;
}

/// The number of workers of a kernel that one worker of the simulation stands for.
int workers_in_one(const collective_plan& plan) {
  const double pairs = static_cast<double>(plan.world) * (plan.world - 1);
  const int kept = std::clamp(static_cast<int>(most_ways / pairs), 1, plan.workers);
  return ceil_div(plan.workers, kept);
}
/// The same plan with fewer workers, whose chunks are larger.
collective_plan with_larger_workers(collective_plan plan, int in_one) {
  plan.workers = ceil_div(plan.workers, in_one);
  plan.chunk *= in_one;
  return plan;
}

}  // namespace

predicted simulate_collective(predictor& p, const timed_case& c) {
  const timing::machine_numbers& n = p.numbers();
  const collective_entry& entry = collective_named(c.op);
  collective_problem problem;
  problem.type = dtype::bf16;
  problem.count = static_cast<std::int64_t>(c.bytes / timed_element_bytes);
  if (entry.has_uneven) problem.count = ceil_div<std::int64_t>(problem.count, c.ranks);
  collective_options options;
  options.direct = c.by == "untax direct";
  const collective_plan first = entry.device_plan(problem, c.ranks, 0, options);
  const bool packets = first.wire == wire_kind::packets;
  const int in_one = c.ranks > 1 ? workers_in_one(first) : 1;
  timing::step_costs costs;
  costs.element_bytes = timed_element_bytes;
  costs.move_pace = n.block_rate * in_one;
  costs.local_pace = n.memory_rate / n.processors * 2 * in_one;
  costs.way = packets ? signal_way::inside : signal_way::released;
  costs.bytes_on_wire = packets && !entry.combines ? 2 : 1;
  costs.detached = packets;
  std::vector<program> programs;
  for (int rank = 0; rank < c.ranks; ++rank) {
    collective_plan plan = entry.device_plan(problem, c.ranks, rank, options);
    if (packets) plan = by_blocks(plan);
    programs.push_back(entry.program_of(problem, with_larger_workers(plan, in_one)));
  }
  return p.run(timing::read_programs(programs, epoch, [&](const kernel& k) {
    costs.launch = k.stage == 0 ? n.start : n.launch_graph;
    return costs;
  }));
}

}  // namespace untax
