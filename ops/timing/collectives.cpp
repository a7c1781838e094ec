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
constexpr double element_bytes = 2;

/// Packets go without programs of their own: each block has a share of every message. So they are
/// read as programs of rooms with a chunk for each block.
collective_plan by_blocks(collective_plan plan) {
  plan.wire = wire_kind::stores;
  plan.chunk = std::max<std::int64_t>(ceil_div<std::int64_t>(plan.chunk, plan.workers), 1);
  return plan;
}

}  // namespace

predicted simulate_collective(predictor& p, const timed_case& c) {
  const timing::machine_numbers& n = p.numbers();
  const collective_entry& entry = collective_named(c.op);
  collective_problem problem;
  problem.type = dtype::bf16;
  problem.count = static_cast<std::int64_t>(c.bytes / element_bytes);
  if (entry.has_uneven) problem.count = ceil_div<std::int64_t>(problem.count, c.ranks);
  collective_options options;
  options.direct = c.by == "untax direct";
  const bool packets = entry.device_plan(problem, c.ranks, 0, options).wire == wire_kind::packets;
  timing::step_costs costs;
  costs.element_bytes = element_bytes;
  costs.move_pace = n.block_rate;
  costs.local_pace = n.memory_rate / n.processors * 2;
  costs.launch_first = n.start;
  costs.launch_next = n.launch_graph;
  costs.way = packets ? signal_way::inside : signal_way::released;
  costs.bytes_on_wire = packets ? 2 : 1;
  costs.detached = packets;
  std::vector<program> programs;
  for (int rank = 0; rank < c.ranks; ++rank) {
    collective_plan plan = entry.device_plan(problem, c.ranks, rank, options);
    if (packets) plan = by_blocks(plan);
    programs.push_back(entry.program_of(problem, plan));
  }
  return p.run(timing::read_programs(programs, epoch, costs));
}

}  // namespace untax
