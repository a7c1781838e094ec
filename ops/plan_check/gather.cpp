#include "ops/plan_check/gather.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "ops/common/nowhere.hpp"

namespace untax::plan_check {
namespace {

/// Of packets, chunks for each turn of a warp.
gather_plan modelled(const gather_plan& plan) {
  constexpr int columns_of_warp = 32 * packet_panel::elements;
  return plan.packets ? in_packets(plan, columns_of_warp) : plan;
}

/// Senders that are warps of CTAs which multiply: calls `found(cta, warp, sender)`.
template <class Found>
void each_beside(const gather_plan& plan, bool by_rows, const Found& found) {
  const moving_blocks all{plan.who, by_rows, plan.gemm.blocks(), plan.protocol.senders};
  for (int cta = 0; cta < plan.gemm.blocks(); ++cta) {
    for (int warp = 0; warp < 4; ++warp) {
      const int sender = sender_beside(all, cta, warp);
      if (sender < plan.protocol.senders) found(cta, warp, sender);
    }
  }
}

/// How many senders there are beside no GEMM: streams, CTAs, or warps of CTAs.
int senders_apart(const gather_plan& plan) {
  const int warps = plan.tma_tiles || plan.protocol.senders_acquire ? 1 : gpu::sender_warps;
  return plan.streams + (plan.comm_ctas + plan.own_grid) * warps;
}

}  // namespace

gather_model::gather_model(const all_gather_gemm_problem& asked, const gather_plan& made)
    : problem(asked),
      plan(modelled(made)),
      how(problem, plan.protocol),
      lists(lists_of(problem, plan)),
      shard(sent_shard::of(how)),
      receiving(receiving_grid::of(how)),
      arrivals(arrival_grid::of(how)),
      segments(gather_segments::of(plan, how)),
      planned_(made) {
  moved.run.world.rank = how.rank();
  moved.run.in = static_cast<const std::byte*>(nowhere::pointer(nowhere::a));
  moved.run.inbox = nowhere::inbox_of(how.rank());
  describe_moved(moved, plan, how);
  maps = maps_of(
      problem, plan, how,
      {nowhere::pointer(nowhere::a), nowhere::pointer(nowhere::b), nowhere::pointer(nowhere::c)},
      moved.run.inbox);
}

schedule::operand_extents gather_model::operands() const {
  const range part = how.shard(how.rank());
  const extent a = how.by_rows() ? extent{part.size, problem.k} : extent{problem.m, part.size};
  return {a, {problem.n, problem.k}, {problem.m, problem.n}};
}

operand_space gather_model::space() const {
  operand_space memory;
  const schedule::operand_extents sizes = operands();
  memory.add(operand::a, how.rank(), nowhere::a, sizes.a);
  memory.add(operand::b, how.rank(), nowhere::b, sizes.b);
  memory.add(operand::c, how.rank(), nowhere::c, sizes.c);
  const auto behind = static_cast<std::int64_t>(bytes_of(plan, how).inbox);
  for (int rank = 0; rank < how.world(); ++rank) {
    const std::int64_t begin = nowhere::inbox + rank * nowhere::span;
    memory.add(operand::inbox, rank, begin, how.inbox());
    memory.add(operand::outbox, rank, begin + behind, how.outbox());
  }
  return memory;
}

comm::sender_program gather_model::does() const {
  comm::sender_program all = says();
  const operand_space memory = space();
  if (how.pulls() || plan.streams > 0) {
    all.steps = memory.moved_steps(moved, all.steps);
  } else if (!plan.packets) {
    all.steps = [=, this](int sender, std::uint64_t epoch, const program::sink& emit) {
      walk_list(memory, sender, epoch, emit);
    };
  }
  return changed(std::move(all), change);
}

/// The steps of a sender who walks its list: where bytes are read and written, and which counters
/// are waited for and raised.
void gather_model::walk_list(const operand_space& memory, int sender, std::uint64_t epoch,
                             const program::sink& emit) const {
  const int me = how.rank();
  const int set = how.sets().set_of(epoch);
  const std::uint64_t use = how.sets().use_of(epoch);
  const auto send_to = [&](const comm::transfer& chunk, int hop) {
    const int peer = receiver_at_hop(me, hop, how.world());
    step s{.what = action::copy, .rows = shard.rows_of(chunk), .cols = chunk.cols};
    if (s.rows == 0) return;
    if (plan.tma_tiles) {
      const gpu::tma_tiles_at& own = maps.shard_tma_tiles;
      const gpu::tma_tiles_at& there = maps.inbox_tma_tiles[static_cast<std::size_t>(peer)];
      // TMA clips a tile where its matrix ends.
      s.rows = std::min<std::int64_t>(own.tma_tile_rows, there.first.rows - chunk.row);
      s.cols = std::min<std::int64_t>(there.tma_tile_columns, own.first.columns - chunk.col);
      gpu::matrix_at layer = there.first;
      layer.data = static_cast<const std::byte*>(layer.data) + set * there.between * 2;
      s.from = memory.rectangle(own.first, chunk.row, chunk.col, s.rows, s.cols);
      s.to = memory.rectangle(layer, chunk.row, chunk.col, s.rows, s.cols);
    } else {
      s.from = memory.moved(moved, {operand::a, me, chunk.row, chunk.col}, s);
      s.to = memory.moved(moved,
                          {operand::inbox, peer, shard.inbox_row + set * shard.set_rows + chunk.row,
                           shard.inbox_column + chunk.col},
                          s);
    }
    s.publish = shard.inbox_room(set, peer, chunk.publish, use);
    s.publish.producer = me;
    // A rank does not ask itself.
    if (shard.counted && peer != me) s.reserve = s.publish;
    emit(s);
  };
  const auto at = static_cast<std::size_t>(sender);
  for (int i = lists.begins.at(at); i < lists.begins.at(at + 1); ++i) {
    const comm::transfer& chunk = lists.entries.at(static_cast<std::size_t>(i));
    for (int hop = 0; hop < chunk.hops; ++hop) send_to(chunk, chunk.first_hop + hop);
  }
  if (!plan.protocol.senders_acquire) return;
  const strided share{sender, how.senders()};
  for (int i = 0; i < receiving.count(share); ++i) {
    const incoming_chunk p = receiving.at(share, set, i);
    if (p.ready < 0) continue;
    emit(step{.acquire = {.producer = p.source,
                          .consumer = me,
                          .number = p.ready,
                          .ready = p.ready,
                          .use = use}});
  }
}

std::vector<std::string> gather_model::faults() const {
  std::vector<std::string> found;
  const auto add = [&](const std::string& fault) {
    if (!fault.empty()) found.push_back(fault);
  };
  if (plan.packets) {
    add(fault_of_packets(problem, planned_));
    return found;
  }
  std::multiset<int> senders;
  each_beside(plan, how.by_rows(), [&](int, int warp, int sender) {
    senders.insert(sender);
    const bool stores = warp >= 1 && warp <= storing_warpgroups(plan.gemm.config);
    if (plan.who == gather_senders::epilogue_warps && !stores)
      add(fmt::format("warp {} sends, and has no memory to send through", warp));
  });
  for (int i = 0; i < senders_apart(plan); ++i) senders.insert(i);
  for (int i = 0; i < plan.protocol.senders; ++i)
    if (senders.count(i) != 1) add(fmt::format("{} warps are sender {}", senders.count(i), i));
  if (static_cast<int>(senders.size()) != plan.protocol.senders)
    add(fmt::format("{} senders instead of {}", senders.size(), plan.protocol.senders));
  if (found.empty()) add_memory_faults(found);
  if (found.empty()) add(difference(does(), says()));
  return found;
}

void gather_model::add_memory_faults(std::vector<std::string>& faults) const {
  const auto expect = [&](bool right, const char* fault) {
    if (!right) faults.emplace_back(fault);
  };
  const auto bytes = [](const extent& e) { return static_cast<std::size_t>(e.rows * e.cols * 2); };
  const gather_bytes had = bytes_of(plan, how);
  expect(had.inbox >= bytes(how.inbox()), "the inbox is too small");
  expect(had.outbox >= bytes(how.outbox()), "the outbox is too small");
  if (!plan.tma_tiles || how.shard(how.rank()).empty()) return;
  const gpu::tma_tiles_at& own = maps.shard_tma_tiles;
  expect(static_cast<int>(maps.inbox_tma_tiles.size()) == how.world(), "maps are missing");
  const gpu::tile_config& c = plan.gemm.config;
  const bool stored = plan.who == gather_senders::epilogue_warps;
  expect(gpu::fits_tma({own.tma_tile_rows, own.tma_tile_columns},
                       stored ? c.epilogue_buffers * gpu::subtile_bytes(c) : gpu::tma_tile_bytes),
         "a TMA tile cannot be so large");
  expect(shard.chunk_bytes == own.tma_tile_rows * own.tma_tile_columns * 2,
         "a TMA tile has other bytes than are waited for");
  if (!stored) return;
  expect(plan.rate_limit > 0, "nothing is sent in finite time");
  // Epilogue warps are held back until what goes out before them has left.
  std::vector<std::pair<int, int>> times;
  for (const comm::transfer& chunk : lists.entries) times.emplace_back(chunk.before, chunk.hops);
  std::ranges::sort(times);
  int next = 0;
  for (const auto& [before, hops] : times) {
    expect(before == next, "a TMA tile has the time of another");
    next += hops;
  }
}

schedule::lane_program gather_model::lanes() const {
  const gpu::tile_config& c = plan.gemm.config;
  const std::int64_t rows = tile_rows(c);
  rank_lanes all({how.rank(), how.world(), how.counters(), how.inbox(), how.outbox(),
                  c.swap_ab ? extent{c.block_n, rows} : extent{rows, c.block_n}});
  const comm::sender_program sends = does();
  const auto senders = static_cast<std::size_t>(sends.count);
  const int rank = how.rank();
  // Flags by which the roles of a CTA wait for its own senders.
  std::vector<int> ended(senders, -1);
  std::vector<std::vector<int>> behind(static_cast<std::size_t>(plan.gemm.blocks()));
  const auto hold = [&](int cta, int sender) {
    const int flag = all.flag(false);
    ended[static_cast<std::size_t>(sender)] = flag;
    behind[static_cast<std::size_t>(cta)].push_back(flag);
  };
  const bool beside =
      plan.who != gather_senders::elsewhere && plan.who != gather_senders::comm_ctas;
  if (beside && plan.packets) {
    for (std::size_t i = 0; i < senders; ++i)
      hold(static_cast<int>(i) % plan.gemm.blocks(), static_cast<int>(i));
  } else if (beside) {
    each_beside(plan, how.by_rows(), [&](int cta, int, int sender) { hold(cta, sender); });
  }
  const auto walk = [&](std::size_t sender, const auto& wanted) {
    all.add(
        {},
        [=](std::uint64_t epoch, const program::sink& emit) {
          sends.steps(static_cast<int>(sender), epoch, [&](const step& s) {
            if (wanted(s)) emit(s);
          });
        },
        ended[sender]);
  };
  // Copies within the GPU go before the kernel, by the stream of the run.
  const bool apart = plan.streams > 0;
  const auto stays = [=](const step& s) {
    return apart && s.what == action::copy && s.to.rank == rank;
  };
  if (apart) all.begin_kernel("own copies", 0);
  for (std::size_t i = 0; apart && i < senders; ++i) walk(i, stays);
  const int stage = apart ? 1 : 0;
  all.begin_kernel("senders", stage);
  for (std::size_t i = 0; i < senders; ++i) walk(i, [=](const step& s) { return !stays(s); });
  all.begin_kernel("gemm", plan.protocol.senders_acquire ? stage + 1 : stage);
  const auto reads = std::make_shared<gather_reads>(*this, space());
  gemm_lanes gemm;
  gemm.plan = &plan.gemm;
  gemm.k = problem.k;
  gemm.sets = how.sets();
  gemm.read = [reads](const gpu::cta_read& of, std::uint64_t epoch, const auto& visit) {
    reads->each(of, epoch, visit);
  };
  gemm.store = [](const step& completes, std::uint64_t, const program::sink& emit) {
    emit(completes);
  };
  for (int source = 0; how.by_rows() && source < how.world(); ++source)
    gemm.rows_of_ranks.push_back(how.shard(source));
  const std::vector<int> done = all.add_gemm(gemm, behind);
  all.add(done,
          [this](std::uint64_t epoch, const program::sink& emit) { how.finish(0, epoch, emit); });
  return all.take();
}

device_findings check_gather(const all_gather_gemm_problem& problem, int ranks,
                             const operator_options& options, int multiprocessors) {
  return check(ranks, [&](int rank) {
    return gather_model(problem,
                        gather_plans(problem, ranks, rank, options, multiprocessors).front());
  });
}

}  // namespace untax::plan_check
