#include "ops/all_gather_gemm/validate.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/comm/placement.hpp"
#include "ops/all_gather_gemm/device_reads.hpp"
#include "ops/common/nowhere.hpp"

namespace untax {
namespace {

using comm::transfer;

/// Entries of one hop each.
std::vector<transfer> by_hop(const std::vector<transfer>& list) {
  std::vector<transfer> all;
  for (const transfer& t : list) {
    for (int i = 0; i < t.hops; ++i) {
      transfer& one = all.emplace_back(t);
      one.hops = 1;
      one.first_hop = static_cast<std::int16_t>(t.first_hop + i);
    }
  }
  return all;
}

std::string text_of(const transfer& t) {
  return fmt::format(
      "{} x {} from {}, {} to {}, {} at hop {}, reserve {} less {}, acquire {}, publish {}, retire "
      "{}, group {}",
      t.rows, t.cols, t.from_row, t.from_col, t.to_row, t.to_col, t.first_hop, t.reserve, t.credit,
      t.acquire, t.publish, t.retire, t.group);
}

class sender_check {
 public:
  sender_check(const all_gather_gemm_problem& problem, const gather_plan& plan,
               const all_gather_gemm_protocol& how, const gather_lists& lists,
               const gather_numbers& numbers)
      : problem_(problem), plan_(plan), how_(how), lists_(lists.senders), numbers_(numbers) {}

  std::vector<std::string> run() {
    expect_numbers();
    expect_addresses();
    if (plan_.tma_tiles && !how_.shard(how_.rank()).empty()) expect_tma_tiles();
    // Steps of a pull, and of DMA engines, are taken as the program says them.
    if (how_.pulls() || plan_.streams > 0) return faults_;
    expect_sets();
    for (int sender = 0; sender < plan_.protocol.senders && faults_.empty(); ++sender)
      expect_sends(sender);
    if (plan_.who == gather_senders::epilogue_warps) expect_times();
    return faults_;
  }

 private:
  void expect(bool right, const std::string& what) {
    if (!right && faults_.size() < most_faults) faults_.push_back(what);
  }

  /// Every sender of the program is one warp, CTA or stream.
  void expect_numbers() {
    std::multiset<int> numbers;
    const int own = plan_.comm_ctas + plan_.own_grid;
    if (plan_.streams > 0) {
      for (int i = 0; i < plan_.streams; ++i) numbers.insert(i);
    } else if (own > 0) {
      const int each = plan_.tma_tiles || plan_.protocol.senders_acquire ? 1 : gpu::sender_warps;
      for (int i = 0; i < own * each; ++i) numbers.insert(i);
    } else {
      const moving_blocks beside{plan_.who, how_.by_rows(), plan_.gemm.blocks(),
                                 plan_.protocol.senders};
      for (int cta = 0; cta < plan_.gemm.blocks(); ++cta) {
        for (int warp = 0; warp < 4; ++warp) {
          const int number = sender_beside(beside, cta, warp);
          if (number >= plan_.protocol.senders) continue;
          numbers.insert(number);
          const bool stores = warp >= 1 && warp <= storing_warpgroups(plan_.gemm.config);
          expect(plan_.who != gather_senders::epilogue_warps || stores,
                 fmt::format("warp {} sends, and has no memory to send through", warp));
        }
      }
    }
    int next = 0;
    for (const int number : numbers)
      expect(number == next++, "a sender is missing, or twice there");
    expect(next == plan_.protocol.senders,
           fmt::format("{} senders instead of {}", next, plan_.protocol.senders));
  }

  /// Steps lie where operands do, within what is allocated.
  void expect_addresses() {
    const gpu::moved_operands& moved = numbers_.moved;
    const gather_bytes bytes = bytes_of(plan_, how_);
    const std::int64_t columns = how_.by_rows() ? problem_.k : how_.shard(how_.rank()).size;
    expect(moved.a_stride == columns, "rows of A are another distance apart");
    expect(moved.inbox_stride == problem_.k, "rows of the inbox are another distance apart");
    expect(!how_.pulls() || moved.outbox_stride == how_.outbox().cols,
           "rows of the outbox are another distance apart");
    const std::int64_t inbox = how_.inbox().rows * how_.inbox().cols * 2;
    expect(static_cast<std::int64_t>(bytes.inbox) >= inbox, "the inbox is too small");
    expect(!how_.pulls() || moved.outbox_begin >= inbox, "the outbox lies in the inbox");
    expect(static_cast<std::int64_t>(bytes.outbox) >= how_.outbox().rows * how_.outbox().cols * 2,
           "the outbox is too small");
    const place first = gather_numbers::at(moved.run.in, problem_, how_);
    expect(how_.shard(how_.rank()).empty() ||
               (first.of == operand::a && first.row == 0 && first.col == 0),
           "A begins elsewhere");
  }

  /// TMA tiles: where a chunk begins in both maps, and how large a tile is.
  void expect_tma_tiles() {
    const gpu::tma_tiles_at& own = numbers_.maps.shard_tma_tiles;
    const sending_grid& grid = numbers_.sending;
    const range part = how_.shard(how_.rank());
    expect(own.tma_tile_rows <= 256 && own.tma_tile_columns <= 256 && own.tma_tile_columns % 8 == 0,
           "a TMA tile cannot be so large");
    expect(grid.tma_tile_bytes() ==
               static_cast<std::uint32_t>(own.tma_tile_rows * own.tma_tile_columns * 2),
           "a TMA tile has other bytes than are waited for");
    const gpu::tile_config& c = plan_.gemm.config;
    const int memory = plan_.who == gather_senders::epilogue_warps
                           ? c.epilogue_buffers * gpu::subtile_bytes(c)
                           : 32768;
    expect(static_cast<int>(grid.tma_tile_bytes()) <= memory,
           "a TMA tile is larger than its memory");
    expect(own.layers == 1 && own.first.rows == grid.rows && own.first.columns == grid.columns &&
               own.first.stride == grid.columns,
           "the map of the shard is another");
    const place first = gather_numbers::at(own.first.data, problem_, how_);
    expect(first.of == operand::a && first.row == 0 && first.col == 0,
           "the shard begins elsewhere");
    expect(static_cast<int>(numbers_.maps.inbox_tma_tiles.size()) == how_.world(),
           "maps are missing");
    for (std::size_t peer = 0; peer < numbers_.maps.inbox_tma_tiles.size(); ++peer) {
      const gpu::tma_tiles_at& there = numbers_.maps.inbox_tma_tiles[peer];
      const place at = gather_numbers::at(there.first.data, problem_, how_);
      expect(at.of == operand::inbox && at.rank == static_cast<int>(peer) &&
                 at.row == (how_.by_rows() ? part.begin : 0) &&
                 at.col == (how_.by_rows() ? 0 : part.begin),
             fmt::format("what goes to rank {} lands elsewhere", peer));
      expect(there.layers == how_.sets().sets && there.between == problem_.m * problem_.k &&
                 there.first.stride == problem_.k && there.first.rows == own.first.rows &&
                 there.first.columns == own.first.columns &&
                 there.tma_tile_rows == own.tma_tile_rows &&
                 there.tma_tile_columns == own.tma_tile_columns,
             fmt::format("the map of rank {} is another", peer));
    }
  }

  void expect_sets() {
    const sending_grid& grid = numbers_.sending;
    const receiving_grid& incoming = numbers_.receiving;
    expect(grid.set_rows == problem_.m, "a set has another number of rows");
    if (how_.sets().sets == 1) return;
    const comm::set_shift& shift = lists_.shift;
    expect(lists_.entries() == 0 || grid.rows == 0 || shift.inbox_rows == 0 ||
               grid.set_rows == shift.inbox_rows,
           "the next set lies elsewhere");
    expect(shift.publish == 0 || grid.ready_set == shift.publish,
           "the next set is signalled by other counters");
    expect(shift.reserve == 0 || grid.free_set == shift.reserve,
           "the next set is reserved by other counters");
    expect(shift.acquire == 0 || incoming.ready_set == shift.acquire,
           "the next set is acquired by other counters");
  }

  [[nodiscard]] transfer entry_of(const outgoing_chunk& p, int hop) const {
    const sending_grid& grid = numbers_.sending;
    transfer t;
    t.from = operand::a;
    t.to = operand::inbox;
    t.first_hop = static_cast<std::int16_t>(hop);
    t.from_row = p.row;
    t.from_col = p.column;
    t.to_row = grid.inbox_row + p.row;
    t.to_col = grid.inbox_column + p.column;
    t.rows = p.rows;
    t.cols = p.columns;
    t.publish = grid.ready_counter(0, p.index);
    // A rank does not ask itself.
    if (grid.counted && hop > 0) t.reserve = grid.free_counter(0, 0);
    return t;
  }

  /// A sender's turns, as loops go through them and by number; then what it acquires.
  void expect_sends(int sender) {
    const sending_grid& grid = numbers_.sending;
    const strided share{sender, plan_.protocol.senders};
    std::vector<transfer> sent;
    std::vector<transfer> by_number;
    const auto add = [&](std::vector<transfer>& to, const outgoing_chunk& p, int hop) {
      for (int i = 0; i < grid.hops_together(); ++i) to.push_back(entry_of(p, hop + i));
    };
    if (grid.hops > 0)
      grid.each(share, [&](const outgoing_chunk& p, int hop, int /*hops*/) { add(sent, p, hop); });
    for (int i = 0; i < grid.turns(share); ++i) {
      const auto turn = grid.turn(share, i);
      add(by_number, turn.chunk, turn.hop);
    }
    expect(sent == by_number, fmt::format("sender {} has other turns by number", sender));
    if (plan_.protocol.senders_acquire) add_acquires(share, sent);
    auto listed = by_hop(lists_.senders[static_cast<std::size_t>(sender)]);
    for (transfer& t : listed) {
      expect(t.group == group_of(t),
             fmt::format("sender {}: another group: {}", sender, text_of(t)));
      t.group = 0;
    }
    if (sent == listed) return;
    for (std::size_t i = 0; i < std::max(sent.size(), listed.size()); ++i) {
      const std::string does = i < sent.size() ? text_of(sent[i]) : "nothing";
      const std::string should = i < listed.size() ? text_of(listed[i]) : "nothing";
      if (i >= sent.size() || i >= listed.size() || !(sent[i] == listed[i]))
        return expect(false, fmt::format("sender {}, entry {}: does {}; should do {}", sender, i,
                                         does, should));
    }
  }
  [[nodiscard]] int group_of(const transfer& t) const {
    const std::int64_t rows = plan_.protocol.raster_rows * plan_.protocol.tile_m;
    return t.rows > 0 ? static_cast<int>(t.to_row / rows) : 0;
  }
  void add_acquires(strided share, std::vector<transfer>& to) const {
    const receiving_grid& grid = numbers_.receiving;
    for (int i = 0; i < grid.count(share); ++i) {
      const incoming_chunk p = grid.at(share, 0, i);
      if (p.ready < 0) continue;
      transfer t;
      t.first_hop = static_cast<std::int16_t>((p.source - grid.rank + grid.ranks) % grid.ranks);
      t.acquire = p.ready;
      to.push_back(t);
    }
  }

  /// What goes out before a TMA tile does, by which epilogue warps are held back: all entries of
  /// all senders before it.
  void expect_times() {
    const sending_grid& grid = numbers_.sending;
    std::uint64_t before = 0;
    std::size_t most = 0;
    for (const auto& list : lists_.senders) most = std::max(most, list.size());
    std::vector<std::vector<std::pair<outgoing_chunk, int>>> turns;
    for (int sender = 0; sender < plan_.protocol.senders; ++sender) {
      const strided share{sender, plan_.protocol.senders};
      auto& all = turns.emplace_back();
      for (int i = 0; i < grid.turns(share); ++i) {
        const auto turn = grid.turn(share, i);
        all.emplace_back(turn.chunk, turn.hop);
      }
    }
    const int rounds = grid.at_once && grid.hops > 0 ? 1 : grid.hops;
    const int count = grid.row_chunks * grid.in_row;
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < count; ++i) {
        const strided share{i % plan_.protocol.senders, plan_.protocol.senders};
        const int mine = share.share_of(count);
        const int turn = round * mine + i / plan_.protocol.senders;
        const auto& [chunk, hop] =
            turns[static_cast<std::size_t>(share.worker)][static_cast<std::size_t>(turn)];
        expect(grid.bytes_before(chunk, hop) == before, "a TMA tile has the time of another");
        before += static_cast<std::uint64_t>(grid.hops_together()) * grid.tma_tile_bytes();
      }
    }
    expect(plan_.rate_limit > 0, "nothing is sent in finite time");
  }

  static constexpr std::size_t most_faults = 8;
  const all_gather_gemm_problem& problem_;
  const gather_plan& plan_;
  const all_gather_gemm_protocol& how_;
  const comm::transfer_lists& lists_;
  const gather_numbers& numbers_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> faults_of_senders(const all_gather_gemm_problem& problem,
                                           const gather_plan& plan,
                                           const all_gather_gemm_protocol& how,
                                           const gather_lists& lists,
                                           const gather_numbers& numbers) {
  return sender_check(problem, plan, how, lists, numbers).run();
}

std::vector<std::string> faults_of_packets(const all_gather_gemm_problem& problem,
                                           const gather_plan& plan, const gather_lists& lists,
                                           const gather_numbers& numbers) {
  std::vector<std::string> faults;
  const packet_panel& panel = numbers.panel;
  const sending_grid& grid = numbers.sending;
  const int threads = packet_threads_of(plan);
  const auto expect = [&](bool right, const std::string& what) {
    if (!right && faults.empty()) faults.push_back(what);
  };
  expect(static_cast<int>(lists.senders.senders.size()) == threads, "threads are missing");
  expect(panel.rows == problem.m && panel.columns == problem.k, "packets are those of another A");
  const std::size_t bytes = packet_panel::bytes * 2 * static_cast<std::size_t>(panel.in_set);
  const all_gather_gemm_protocol how(problem, plan.protocol);
  expect(bytes_of(plan, how).inbox >= bytes, "the inbox is too small for its packets");
  // Packets have no counters of their own, so others are behind those of chunks.
  for (int set = 0; set < how.sets().sets; ++set)
    expect(!grid.counted || grid.free_counter(set, 0) == how.free_counter(set, 0),
           "other counters are waited for");
  expect(grid.counted == how.counts_readers(), "readers are counted, or not, at one end only");
  std::set<int> places;
  for (int i = 0; i < threads && faults.empty(); ++i) {
    packet_share share(grid, i, threads);
    std::size_t next = 0;
    const auto listed = by_hop(lists.senders.senders[static_cast<std::size_t>(i)]);
    for (int turn = 0; turn < share.turns(); ++turn) {
      const auto at = share.take();
      if (at.row < 0) continue;
      // To all ranks, the rank itself last: in the list it is the first.
      for (int hop = 0; hop < plan.protocol.world; ++hop, ++next) {
        if (next >= listed.size()) return {fmt::format("thread {} sends too much", i)};
        const transfer& t = listed[next];
        const bool right = t.first_hop == hop && t.rows == 1 && t.cols == packet_panel::elements &&
                           t.from_row == at.row && t.from_col == at.column &&
                           t.to_row == grid.inbox_row + at.row && t.to_col == at.column &&
                           (t.reserve >= 0) == (grid.counted && hop > 0);
        expect(right, fmt::format("thread {} sends another packet than {}", i, text_of(t)));
      }
      const int row = grid.inbox_row + at.row;
      const int place = panel.at(row, at.column);
      expect(panel.source_of(row) == plan.protocol.rank, "packets are from another rank");
      expect(place < panel.in_set && places.insert(place).second, "two packets have one place");
      // Threads that multiply go from k-block to k-block.
      const int block = at.column / gpu::block_k;
      expect(place == panel.at(row, at.column % gpu::block_k) +
                          block * panel.rows * packet_panel::across,
             "a packet is not where it is read");
    }
    expect(next == listed.size(), fmt::format("thread {} leaves packets out", i));
  }
  return faults;
}

std::vector<std::string> faults_of(const all_gather_gemm_problem& problem,
                                   const gather_plan& plan) {
  if (plan.packets) {
    const gather_plan cut = in_packets(plan, packet_panel::elements, packet_threads_of(plan));
    const all_gather_gemm_protocol packets(problem, cut.protocol);
    const all_gather_gemm_protocol how(problem, plan.protocol);
    auto faults = faults_of_packets(problem, plan, lower_gather(cut, packets),
                                    gather_numbers::of(problem, plan, how));
    if (!faults.empty()) return faults;
    return faults_of_reads(problem, plan, how, gather_numbers::of(problem, plan, how));
  }
  const all_gather_gemm_protocol how(problem, plan.protocol);
  const gather_numbers numbers = gather_numbers::of(problem, plan, how);
  auto faults = faults_of_senders(problem, plan, how, lower_gather(plan, how), numbers);
  if (!faults.empty()) return faults;
  return faults_of_reads(problem, plan, how, numbers);
}

void require_faultless(const all_gather_gemm_problem& problem, const gather_plan& plan) {
  const auto faults = faults_of(problem, plan);
  if (faults.empty()) return;
  throw error(
      errc::internal,
      fmt::format("rank {}: all_gather_gemm: the plan does not do what its program says: {}",
                  plan.protocol.rank, faults.front()));
}

}  // namespace untax
