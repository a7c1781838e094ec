#include <set>
#include <utility>

#include <fmt/format.h>

#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "ops/plan_check/gather.hpp"

namespace untax::plan_check {
namespace {

/// Threads that send packets.
int packet_threads_of(const gather_plan& plan) {
  if (plan.who == gather_senders::comm_ctas) return plan.comm_ctas * gpu::block_threads;
  return packet_thread_beside({plan.who, true, plan.gemm.blocks(), plan.protocol.senders}, 0, 0)
      .threads;
}

/// Calls `found(thread)` for each thread that sends, as the CTAs of the kernel number them.
template <class Found>
void each_thread(const gather_plan& plan, const Found& found) {
  if (plan.who == gather_senders::comm_ctas) {
    const int threads = plan.comm_ctas * gpu::block_threads;
    for (int i = 0; i < threads; ++i) found(packet_thread{i, threads});
    return;
  }
  const moving_blocks beside{plan.who, true, plan.gemm.blocks(), plan.protocol.senders};
  for (int cta = 0; cta < plan.gemm.blocks(); ++cta) {
    for (int thread = 0; thread < gpu::warpgroup_threads; ++thread) {
      if (sends_packets(beside, cta, thread / 32)) found(packet_thread_beside(beside, cta, thread));
    }
  }
}

}  // namespace

gather_plan in_packets(const gather_plan& plan, int columns) {
  gather_plan cut = plan;
  cut.protocol.tile_m = 1;
  cut.protocol.panel_k = cut.protocol.chunk_cross = columns;
  cut.protocol.raster_rows = cut.protocol.k_interleave = 1;
  cut.protocol.fan_out = true;
  cut.protocol.senders = packet_threads_of(plan) / 32;
  return cut;
}

std::string fault_of_packets(const all_gather_gemm_problem& problem, const gather_plan& plan) {
  const all_gather_gemm_protocol how(problem, plan.protocol);
  const packet_panel panel = packet_panel::of(how);
  const sent_shard shard = sent_shard::of(how);
  std::string fault;
  const auto expect = [&](bool right, const char* what) {
    if (!right && fault.empty()) fault = what;
  };
  expect(panel.rows == problem.m && panel.columns == problem.k, "packets are those of another A");
  expect(
      bytes_of(plan, how).inbox >= packet_panel::bytes * 2 * static_cast<std::size_t>(panel.in_set),
      "the inbox is too small for its packets");
  // Packets have no counters of their own, so others are behind those of chunks.
  for (int set = 0; set < how.sets().sets; ++set)
    expect(!shard.counted || shard.free_counter(set, 0) == how.free_counter(set, 0),
           "other counters are waited for");
  expect(shard.counted == how.counts_readers(), "readers are counted, or not, at one end only");
  std::set<std::pair<int, int>> sent;
  std::set<int> places;
  int threads = 0;
  each_thread(plan, [&](const packet_thread& me) {
    ++threads;
    packet_share share(shard, me.number, me.threads);
    expect(share.turns() == packet_share(shard, me.number / 32 * 32, me.threads).turns(),
           "a warp does not go on together");
    for (int turn = 0; turn < share.turns(); ++turn) {
      const auto at = share.take();
      if (at.row < 0) continue;
      expect(sent.insert({at.row, at.column}).second, "a packet is sent twice");
      expect(at.row < shard.rows && at.column < shard.columns && at.column % 4 == 0,
             "what is sent is no packet of the shard");
      const int row = shard.inbox_row + at.row;
      expect(panel.source_of(row) == how.rank(), "packets are from another rank");
      const int place = panel.at(row, at.column);
      expect(place >= 0 && place < panel.in_set && places.insert(place).second,
             "two packets have one place");
      // Threads that multiply go from k-block to k-block.
      expect(place == panel.at(row, at.column % gpu::block_k) +
                          at.column / gpu::block_k * panel.rows * packet_panel::across,
             "a packet is not where it is read");
    }
  });
  expect(threads == packet_threads_of(plan), "threads are missing");
  expect(static_cast<int>(sent.size()) == shard.rows * shard.columns / packet_panel::elements,
         "packets are left out");
  return fault;
}

}  // namespace untax::plan_check
