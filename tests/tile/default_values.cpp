// Default values of structures mean nothing: no elements, no rank but the first, index -1 where 0
// is an index, and 1 for divisors and factors. Code fills structures field by field, so the default
// has to be the meaning of a field that it leaves out. (Nothing is const here, so that it is filled
// when the test runs and not when it is compiled.)
#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include <gtest/gtest.h>

#include <untax/flow/control.hpp>
#include <untax/flow/fault_plan.hpp>
#include <untax/flow/room.hpp>
#include <untax/flow/wait_site.hpp>
#include <untax/rma/group.hpp>
#include <untax/rma/tile_view.hpp>
#include <untax/symmetric/heap.hpp>
#include <untax/symmetric/segment.hpp>
#include <untax/symmetric/symmetric.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/row_program.hpp>
#include <untax/tile/shard.hpp>
#include <untax/tile/step.hpp>
#include <untax/tile/tile_ring.hpp>
#include <untax/world/devices.hpp>
#include <untax/world/launch.hpp>
#include <untax/world/placement.hpp>

#include "engines/host/attention.hpp"
#include "engines/host/convert.hpp"
#include "engines/host/normalise.hpp"
#include "engines/host/operand_memory.hpp"
#include "engines/schedule/check.hpp"
#include "engines/schedule/lanes.hpp"
#include "engines/schedule/matrix_map.hpp"
#include "engines/schedule/need.hpp"
#include "engines/schedule/plan.hpp"
#include "engines/schedule/signals.hpp"
#include "engines/schedule/walk.hpp"
#include "ops/choice/table.hpp"
#include "ops/collectives_common/chunk_ring.hpp"
#include "ops/collectives_common/parts.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/collectives_common/two_phase_layout.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/device_schedule.hpp"
#include "ops/common/memory_need.hpp"
#include "ops/common/model_check.hpp"
#include "ops/common/planning.hpp"
#include "ops/gemm_reduce_common/protocol.hpp"
#include "src/world/settings.hpp"
#include "src/world/unix_socket.hpp"

namespace {

using namespace untax;

/// Every value is `wanted`.
template <class... T>
void expect_all(double wanted, T... values) {
  const std::initializer_list<double> numbers = {static_cast<double>(values)...};
  EXPECT_TRUE(std::ranges::all_of(numbers, [&](double v) { return v == wanted; }))
      << "number "
      << std::ranges::find_if(numbers, [&](double v) { return v != wanted; }) - numbers.begin()
      << " is not " << wanted;
}

TEST(default_values, of_ranges_and_grids) {
  range r;
  expect_all(0, r.begin, r.size);
  EXPECT_TRUE(r.empty());
  sharding s;
  expect_all(0, s.extent);
  expect_all(1, s.parts, s.granularity, pieces{}.step);
  expect_all(0, pieces{}.whole.begin, pieces{}.whole.size, pieces{}.count());
  counter_block block;
  expect_all(0, block.base, block.rows, block.cols, counter_layout{}.size());
  strided lanes;
  expect_all(0, lanes.worker);
  expect_all(1, lanes.workers);
  raster_grid raster;
  expect_all(1, raster.down, raster.across, raster.raster_rows, raster.k_interleave);
  extent e;
  expect_all(0, e.rows, e.cols);
  barrier_steps barrier;
  expect_all(0, barrier.rank, barrier.flags.rows);
  expect_all(1, barrier.world);
  tile_ring ring;
  expect_all(0, ring.rank, ring.tile_m, ring.tile_n);
  expect_all(1, ring.workers, ring.senders);
}

TEST(default_values, of_runs_with_a_capacity) {
  row_run run;
  expect_all(1, run.number);
  expect_all(0, run.rows);
  row_program::sizes sizes;
  expect_all(0, sizes.rank, sizes.counters);
  expect_all(1, sizes.world, sizes.kernels);
}

TEST(default_values, of_steps_and_rooms) {
  place at;
  EXPECT_EQ(at.of, operand::none);
  expect_all(-1, at.rank);
  expect_all(0, at.row, at.col);
  step s;
  EXPECT_EQ(s.what, action::none);
  expect_all(0, s.first, s.last, s.everywhere, s.rows, s.cols, s.depth, s.reader);
  for (const room& place : {s.reserve, s.acquire, s.publish, s.retire}) {
    EXPECT_FALSE(place.named());
    expect_all(-1, place.producer, place.consumer, place.number, place.ready, place.free);
    expect_all(1, place.readers, place.credit);
    expect_all(0, place.use);
  }
  expect_all(2, room_sets{}.sets);
  kernel k;
  EXPECT_STREQ(k.name, "");
  expect_all(0, k.stage);
  expect_all(1, k.workers);
}

TEST(default_values, of_rank_records) {
  wait_site site;
  expect_all(-1, site.peer, site.room);
  expect_all(0, site.expected, site.progress, site.operator_name.size);
  wait_snapshot seen;
  expect_all(-1, seen.peer, seen.room);
  expect_all(0, seen.expected, seen.seen, seen.since, seen.progress);
  stop_report report;
  expect_all(-1, report.reporter, report.suspect);
  EXPECT_EQ(report.code, errc::internal);
  ledger_line line;
  expect_all(0, line.sequence, line.chain, line.call);
  fault f;
  expect_all(0, f.rank);
  expect_all(1, f.nth, f.code);
  EXPECT_EQ(f.duration.count(), 100);
  fault_site where;
  expect_all(0, where.rank, where.kernel, where.worker, where.step, where.epoch);
}

TEST(default_values, of_memory) {
  heap_use use;
  expect_all(0, use.offset, use.bytes);
  segment_layout layout;
  expect_all(1, layout.ranks);
  expect_all(0, layout.control_bytes, layout.arena_bytes, layout.first_bytes);
  symmetric<int> nothing;
  expect_all(0, nothing.size(), nothing.span());
  EXPECT_FALSE(static_cast<bool>(nothing));
  detail::share part;
  expect_all(0, part.begin, part.end);
  tile_bounds bounds;
  tile_view<int> view;
  expect_all(0, bounds.rows, bounds.cols, view.rows, view.cols, view.stride);
  host::tile_memory tile;
  host::operand_memory memory;
  expect_all(0, tile.stride, memory.bytes_per_rank, memory.stride, memory.rank);
  host::attention_cache cache;
  expect_all(0, cache.capacity, cache.page_size, cache.pages, cache.logit_cap);
  expect_all(1, cache.kv_heads, cache.head_dim, cache.scale);
  host::norm_context norm;
  expect_all(0, norm.normed_per_rank, norm.scales_per_rank, norm.epsilon);
  expect_all(1, norm.scale);
}

TEST(default_values, of_worlds) {
  placement p;
  expect_all(0, p.rank, p.once);
  expect_all(1, p.world_size);
  process_launch launch;
  expect_all(1, launch.ranks);
  EXPECT_EQ(launch.grace.count(), 5000);
  EXPECT_EQ(launch.limit.count(), 0);
  process_end end;
  expect_all(-1, end.rank, end.exit_code);
  expect_all(0, end.signal, end.killed, end.ok());
  launch_result result;
  expect_all(-1, result.first_failure);
  expect_all(0, result.interrupt);
  device_facts facts;
  expect_all(0, facts.major, facts.minor, facts.multiprocessors, facts.memory_bytes,
             facts.memory_free, facts.l2_bytes, facts.virtual_memory, facts.descriptors,
             facts.multicast);
  expect_all(-1, facts.links);
  peer_facts peer;
  expect_all(0, peer.access, peer.atomics, peer.push, peer.pull, peer.signal_time);
  settings s;
  expect_all(0, s.heap_bytes, s.heap_limit, s.heap_guards, s.wait_limit.count(),
             s.join_limit.count());
  expect_all(1, s.ranks_per_gpu);
  unix_socket::credentials who;
  expect_all(0, who.process, who.user, unix_socket::packet{}.bytes);
}

TEST(default_values, of_schedules) {
  schedule::schedule_report report;
  expect_all(0, report.ranks, report.steps, report.waits);
  schedule::lane_program::rank_memory memory;
  expect_all(0, memory.rank, memory.counters);
  expect_all(1, memory.world);
  schedule::event event;
  expect_all(-1, event.lane, event.id);
  expect_all(0, event.time, event.happened());
  schedule::origin origin;
  expect_all(-1, origin.rank);
  expect_all(0, origin.down, origin.right, origin.known());
  schedule::need need;
  schedule::worker_name who;
  schedule::step_position position;
  schedule::access access;
  expect_all(0, need.rank, need.index, need.value, who.kernel, who.worker, position.rank,
             position.epoch, position.index, access.rows, access.cols, access.writes);
  schedule::signal_table::raise raised;
  EXPECT_EQ(raised.verb, channel_verb::publish);
  expect_all(0, raised.value, raised.by.epoch);
}

TEST(default_values, of_plans) {
  chunk_deal deal;
  expect_all(-1, deal.size);
  expect_all(0, deal.each, deal.more, lane_chunks{}.count_of_lane);
  parcel p;
  expect_all(0, p.from, p.to, p.lane, p.number);
  expect_all(0, root_parts{}.count, root_parts{}.root, equal_parts{}.count);
  expect_all(1, unequal_parts{}.world, ownership{}.world);
  expect_all(0, ownership{}.first, ownership{}.full);
  collective_need need;
  expect_all(0, need.largest, need.largest_one, need.total, need.can_have_two_phases);
  expect_all(1, need.packet_phases);
  local_gemm gemm;
  summed_gemm summed;
  expect_all(0, gemm.rows, gemm.cols, gemm.depth, summed.m, summed.n, summed.k,
             argument_check{}.rank);
  device_findings findings;
  expect_all(0, findings.transfers, findings.lanes, findings.steps, findings.waits);
  memory_need bytes;
  expect_all(0, bytes.weights, bytes.activations, bytes.heaps, bytes.work_space,
             bytes.heap_of_rank);
  check_effort effort;
  EXPECT_EQ(effort.executions, 500U);
  variant_findings variant;
  expect_all(0, variant.schedules, variant.executions);
  tuned_problem problem;
  expect_all(2, problem.ranks);
  expect_all(0, problem.m, problem.n, problem.k, tuning_table{}.repeats);
  device_bounds bounds;
  device_rates rates;
  expect_all(0, bounds.compute, bounds.link, rates.flops, rates.memory, rates.link);
}

}  // namespace
