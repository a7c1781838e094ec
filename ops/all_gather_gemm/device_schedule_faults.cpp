#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "ops/all_gather_gemm/device_schedule.hpp"

namespace untax::plan_check {
namespace {

/// The number of senders that are not beside a GEMM: streams, CTAs, or warps of CTAs.
int senders_apart(const gather_plan& plan) {
  const int warps = plan.tma_tiles || plan.protocol.senders_acquire ? 1 : gpu::sender_warps;
  return plan.streams + (plan.comm_ctas + plan.own_grid) * warps;
}

/// The threads that send packets, with the numbers that the CTAs of the kernel give them.
std::vector<packet_thread> packet_threads(const gather_plan& plan) {
  std::vector<packet_thread> threads;
  const int apart = plan.comm_ctas * gpu::block_threads;
  if (plan.who == gather_senders::comm_ctas) {
    for (int i = 0; i < apart; ++i) threads.push_back({i, apart});
    return threads;
  }
  const moving_blocks beside{plan.who, true, plan.gemm.blocks(), plan.protocol.senders};
  for (int cta = 0; cta < plan.gemm.blocks(); ++cta) {
    for (int thread = 0; thread < gpu::warpgroup_threads; ++thread)
      if (sends_packets(beside, cta, thread / 32))
        threads.push_back(packet_thread_beside(beside, cta, thread));
  }
  return threads;
}

}  // namespace

std::vector<std::string> gather_model::faults() const {
  std::vector<std::string> texts;
  if (plan.packets) {
    texts = {fault_of_packets()};
  } else {
    texts = sender_faults();
    if (texts.empty()) texts = memory_faults();
    if (texts.empty()) texts = {difference(does(), says())};
  }
  std::erase(texts, "");
  return texts;
}

std::vector<std::string> gather_model::sender_faults() const {
  std::vector<std::string> texts;
  std::multiset<int> senders;
  for (const sending_warp& w : senders_beside()) {
    senders.insert(w.sender);
    const bool stores = w.warp >= 1 && w.warp <= storing_warpgroups(plan.gemm.config);
    if (plan.who == gather_senders::epilogue_warps && !stores)
      texts.push_back(fmt::format("warp {} sends, and has no memory to send through", w.warp));
  }
  for (int i = 0; i < senders_apart(plan); ++i) senders.insert(i);
  for (int i = 0; i < plan.protocol.senders; ++i)
    if (senders.count(i) != 1)
      texts.push_back(fmt::format("{} warps are sender {}", senders.count(i), i));
  if (static_cast<int>(senders.size()) != plan.protocol.senders)
    texts.push_back(fmt::format("{} senders instead of {}", senders.size(), plan.protocol.senders));
  return texts;
}

std::vector<std::string> gather_model::memory_faults() const {
  std::vector<std::string> texts;
  const auto expect = [&](bool right, const char* fault) {
    if (!right) texts.emplace_back(fault);
  };
  const auto bytes = [](const extent& e) { return static_cast<std::size_t>(e.rows * e.cols * 2); };
  const gather_bytes had = bytes_of(plan, how);
  expect(had.inbox >= bytes(how.inbox()), "the inbox is too small");
  expect(had.outbox >= bytes(how.outbox()), "the outbox is too small");
  if (!plan.tma_tiles || how.shard(how.rank()).empty()) return texts;
  expect(static_cast<int>(maps.inbox_tma_tiles.size()) == how.world(), "maps are missing");
  const gpu::tma_tile_size tile{maps.shard_tma_tiles.tma_tile_rows,
                                maps.shard_tma_tiles.tma_tile_columns};
  const gpu::tile_config& c = plan.gemm.config;
  const bool stored = plan.who == gather_senders::epilogue_warps;
  expect(gpu::fits_tma(tile,
                       stored ? c.epilogue_buffers * gpu::subtile_bytes(c) : gpu::tma_tile_bytes),
         "a TMA tile cannot be so large");
  expect(shard.chunk_bytes == static_cast<int>(tile.bytes()),
         "a TMA tile has other bytes than are waited for");
  if (!stored) return texts;
  expect(plan.rate_limit > 0, "nothing is sent in finite time");
  // Epilogue warps wait until all chunks that precede theirs have left.
  std::vector<std::pair<int, int>> times;
  for (const comm::transfer& chunk : lists.entries) times.emplace_back(chunk.before, chunk.hops);
  std::ranges::sort(times);
  int next = 0;
  for (const auto& [before, hops] : times) {
    expect(before == next, "a TMA tile has the time of another");
    next += hops;
  }
  return texts;
}

gather_plan gather_model::in_packets(const gather_plan& plan) {
  gather_plan cut = plan;
  cut.protocol.tile_m = 1;
  cut.protocol.panel_k = cut.protocol.chunk_cross = 32 * packet_panel::elements;
  cut.protocol.raster_rows = cut.protocol.k_interleave = 1;
  cut.protocol.fan_out = true;
  cut.protocol.senders = packet_threads(plan).front().threads / 32;
  return cut;
}

/// Threads that send no packets of their own; packets that are left out, sent twice, share a place
/// or are not where they are read.
std::string gather_model::fault_of_packets() const {
  const all_gather_gemm_protocol protocol(problem, planned_.protocol);
  const packet_panel panel = packet_panel::of(protocol);
  const sent_shard own = sent_shard::of(protocol);
  std::string fault;
  const auto expect = [&](bool right, const char* what) {
    if (!right && fault.empty()) fault = what;
  };
  expect(panel.rows == problem.m && panel.columns == problem.k, "packets are those of another A");
  expect(bytes_of(planned_, protocol).inbox >=
             packet_panel::bytes * 2 * static_cast<std::size_t>(panel.in_set),
         "the inbox is too small for its packets");
  // Packets have no counters of their own, so the free counters follow those of chunks.
  for (int set = 0; set < protocol.sets().sets; ++set)
    expect(!own.counted || own.free_counter(set, 0) == protocol.free_counter(set, 0),
           "other counters are waited for");
  expect(own.counted == protocol.counts_readers(), "readers are counted, or not, at one end only");
  std::set<std::pair<int, int>> sent;
  std::set<int> places;
  const std::vector<packet_thread> threads = packet_threads(planned_);
  for (const packet_thread& me : threads) {
    packet_share share(own, me.number, me.threads);
    expect(share.turns() == packet_share(own, me.number / 32 * 32, me.threads).turns(),
           "a warp does not go on together");
    for (int turn = 0; turn < share.turns(); ++turn) {
      const auto at = share.take();
      if (at.row < 0) continue;
      expect(sent.insert({at.row, at.column}).second, "a packet is sent twice");
      expect(at.row < own.rows && at.column < own.columns && at.column % 4 == 0,
             "what is sent is no packet of the shard");
      const int row = own.inbox_row + at.row;
      expect(panel.source_of(row) == protocol.rank(), "packets are from another rank");
      const int place = panel.at(row, at.column);
      expect(place >= 0 && place < panel.in_set && places.insert(place).second,
             "two packets have one place");
      // Threads that multiply advance from k-block to k-block.
      expect(place == panel.at(row, at.column % gpu::block_k) +
                          at.column / gpu::block_k * panel.rows * packet_panel::across,
             "a packet is not where it is read");
    }
  }
  expect(static_cast<int>(threads.size()) == threads.front().threads, "threads are missing");
  expect(static_cast<int>(sent.size()) == own.rows * own.columns / packet_panel::elements,
         "packets are left out");
  return fault;
}

}  // namespace untax::plan_check
