#include "ops/all_gather_gemm/device_schedule.hpp"

#include <algorithm>
#include <utility>

#include "engines/gpu/comm/placement.hpp"
#include "engines/schedule/check.hpp"
#include "ops/all_gather_gemm/row_gather.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/common/nowhere.hpp"

namespace untax::plan_check {
namespace {

/// The plan for a run with the rows of the problem, which vary where it has a capacity.
gather_plan for_rows(gather_plan plan, const all_gather_gemm_problem& run) {
  if (plan.protocol.capacity > 0) plan.set_rows(run);
  return plan;
}

}  // namespace

gather_model::gather_model(const all_gather_gemm_problem& asked, const gather_plan& planned)
    : problem(asked),
      plan(for_rows(planned.packets ? in_packets(planned) : planned, asked)),
      how(problem, plan.protocol),
      lists(lists_of(problem, plan)),
      shard(sent_shard::of(how)),
      receiving(receiving_grid::of(how)),
      arrivals(arrival_grid::of(how)),
      segments(gather_segments::of(plan, how)),
      planned_(planned) {
  moved.run.world.rank = how.rank();
  moved.run.in = static_cast<const std::byte*>(nowhere::pointer(nowhere::a));
  moved.run.inbox = nowhere::inbox_of(how.rank());
  describe_moved(moved, plan, how);
  maps = maps_of(
      problem, plan, how,
      {nowhere::pointer(nowhere::a), nowhere::pointer(nowhere::b), nowhere::pointer(nowhere::c)},
      moved.run.inbox);
  const schedule::operand_extents sizes = operands();
  memory_.add(operand::a, how.rank(), nowhere::a, sizes.a);
  memory_.add(operand::b, how.rank(), nowhere::b, sizes.b);
  memory_.add(operand::c, how.rank(), nowhere::c, sizes.c);
  const auto behind = static_cast<std::int64_t>(bytes_of(plan, how).inbox);
  for (int rank = 0; rank < how.world(); ++rank) {
    const std::int64_t begin = nowhere::inbox + rank * nowhere::span;
    memory_.add(operand::inbox, rank, begin, how.inbox());
    memory_.add(operand::outbox, rank, begin + behind, how.outbox());
  }
}

schedule::operand_extents gather_model::operands() const {
  const range part = how.shard(how.rank());
  const extent a = how.by_rows() ? extent{part.size, problem.k} : extent{problem.m, part.size};
  return {a, {problem.n, problem.k}, {problem.m, problem.n}};
}

comm::sender_program gather_model::does() const {
  comm::sender_program program_of_senders = says();
  if (how.pulls() || plan.streams > 0) {
    program_of_senders.steps = memory_.moved_steps(moved, program_of_senders.steps);
  } else if (!plan.packets) {
    program_of_senders.steps = [this](int sender, std::uint64_t epoch, const program::sink& emit) {
      walk_list(sender, epoch, emit);
    };
  }
  return changed(std::move(program_of_senders), change);
}

/// The steps of a sender that walks its list: the places that it reads and writes, and the counters
/// that it waits for and raises.
void gather_model::walk_list(int sender, std::uint64_t epoch, const program::sink& emit) const {
  const int me = how.rank();
  const int set = how.sets().set_of(epoch);
  const std::uint64_t use = how.sets().use_of(epoch);
  const auto send_to = [&](const comm::transfer& chunk, int hop) {
    const int peer = receiver_at_hop(me, hop, how.world());
    step s{.what = action::copy, .rows = shard.rows_of(chunk), .cols = chunk.cols};
    if (s.rows == 0) return;
    if (plan.tma_tiles) {
      const gpu::tma_tiles_at& own = maps.shard_tma_tiles;
      const gpu::tma_tiles_at& peer_inbox = maps.inbox_tma_tiles[static_cast<std::size_t>(peer)];
      // TMA clips a tile where its matrix ends.
      s.rows = std::min<std::int64_t>(own.tma_tile_rows, peer_inbox.first.rows - chunk.row);
      s.cols = std::min<std::int64_t>(peer_inbox.tma_tile_columns, own.first.columns - chunk.col);
      gpu::matrix_at layer = peer_inbox.first;
      layer.data = static_cast<const std::byte*>(layer.data) + set * peer_inbox.between * 2;
      s.from = memory_.rectangle(own.first, chunk.row, chunk.col, s.rows, s.cols);
      s.to = memory_.rectangle(layer, chunk.row, chunk.col, s.rows, s.cols);
    } else {
      s.from = memory_.moved(moved, {operand::a, me, chunk.row, chunk.col}, s);
      s.to =
          memory_.moved(moved,
                        {operand::inbox, peer, shard.inbox_row + set * shard.set_rows + chunk.row,
                         shard.inbox_column + chunk.col},
                        s);
    }
    s.publish = shard.inbox_room(set, peer, chunk.publish, use);
    s.publish.producer = me;
    // A rank needs no permission of its own.
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
    if (p.ready >= 0) emit(acquires(p.source, me, p.ready, use));
  }
}

std::vector<gather_model::sending_warp> gather_model::senders_beside() const {
  const moving_blocks blocks{plan.who, how.by_rows(), plan.gemm.blocks(), plan.protocol.senders};
  std::vector<sending_warp> warps;
  for (int cta = 0; cta < blocks.blocks; ++cta) {
    for (int warp = 0; warp < 4; ++warp) {
      const int sender = sender_beside(blocks, cta, warp);
      if (sender < blocks.senders) warps.push_back({cta, warp, sender});
    }
  }
  return warps;
}

schedule::lane_program gather_model::lanes() const {
  schedule::lane_program all({how.rank(), how.world(), how.counters(), how.inbox(), how.outbox(),
                              tile_extent(plan.gemm.config)});
  const comm::sender_program sends = does();
  // Flags with which the roles of a CTA wait for its own senders: for all of them before the roles
  // begin; for a warp that polls for arrivals after it has sent; or before epilogues store.
  std::vector<int> ended(static_cast<std::size_t>(sends.count), -1);
  std::vector<std::vector<int>> behind(static_cast<std::size_t>(plan.gemm.blocks()));
  for (const sending_warp& w : senders_beside()) {
    const int flag = all.add_flag(false);
    ended[static_cast<std::size_t>(w.sender)] = flag;
    behind[static_cast<std::size_t>(w.cta)].push_back(flag);
  }
  const auto await_senders = [behind, rank = how.rank()](const cta_work& work, std::uint64_t epoch,
                                                         const program::sink& emit) {
    for (const int flag : behind[static_cast<std::size_t>(work.cta)])
      emit(schedule::lane_program::awaits(rank, flag, epoch));
  };
  const bool stores_later = plan.who == gather_senders::epilogue_warps;
  if (plan.who != gather_senders::all_ctas_first) behind.clear();
  const auto add_senders = [&](const char* name, int stage, const auto& wanted) {
    all.begin_kernel(name, stage, schedule::lane_work::sends);
    for (int sender = 0; sender < sends.count; ++sender)
      all.add(
          {},
          [=](std::uint64_t epoch, const program::sink& emit) {
            sends.steps(sender, epoch, [&](const step& s) {
              if (wanted(s)) emit(s);
            });
          },
          ended[static_cast<std::size_t>(sender)]);
  };
  // Copies within the GPU run before the kernel, on the stream of the run.
  const int stage = plan.streams > 0 ? 1 : 0;
  const auto stays = [stage, rank = how.rank()](const step& s) {
    return stage > 0 && s.what == action::copy && s.to.rank == rank;
  };
  if (stage > 0) add_senders("own copies", 0, stays);
  add_senders("senders", stage, [=](const step& s) { return !stays(s); });
  all.begin_kernel("gemm", plan.protocol.senders_acquire ? stage + 1 : stage,
                   schedule::lane_work::multiplies);
  gemm_lanes gemm;
  gemm.plan = &plan.gemm;
  gemm.k = problem.k;
  gemm.sets = how.sets();
  gemm.read = [this](const gpu::cta_read& tile_read, std::uint64_t epoch, const auto& visit) {
    read(tile_read, epoch, visit);
  };
  gemm.store = [=](const cta_work& work, const step& completes, std::uint64_t epoch,
                   const program::sink& emit) {
    emit(completes);
    if (stores_later) await_senders(work, epoch, emit);
  };
  if (plan.who == gather_senders::warps && plan.polls) gemm.before_waits = await_senders;
  for (int source = 0; how.by_rows() && source < how.world(); ++source)
    gemm.rows_of_ranks.push_back(how.shard(source));
  const std::vector<int> done = add_gemm(all, gemm, behind);
  all.add(done,
          [this](std::uint64_t epoch, const program::sink& emit) { how.finish(0, epoch, emit); });
  return all;
}

/// Visits the parts of a tile that a CTA reads and waits for, by the numbers and tensor maps that
/// its kernel gets.
void gather_model::read(const gpu::cta_read& tile_read, std::uint64_t epoch,
                        const std::function<void(const factors&)>& visit) const {
  const int set = how.sets().set_of(epoch);
  const bool by_k_blocks = segments.rows == 0 && !arrivals.by_rows;
  int next = tile_read.end;
  for (int k_block = tile_read.begin; k_block < tile_read.end; k_block = next) {
    const auto at = segments.part_of(tile_read.a.begin, k_block, plan.gemm.schedule.k_blocks, set,
                                     shard.set_rows);
    const int end = std::min(at.end, tile_read.end);
    next = k_block + std::max(1, round_up(end - k_block, k_blocks_per_stage(plan.gemm.config)));
    const auto segment = static_cast<std::size_t>(at.segment);
    if (segment >= maps.a.size()) continue;
    factors f = memory_.multiplied(tile_read, maps.a[segment], at.row,
                                   by_k_blocks ? maps.b_or_c[segment] : maps.b,
                                   segments.rows > 0 ? maps.b_or_c[segment] : maps.c,
                                   segments.row_of_result(tile_read.a.begin),
                                   {std::int64_t{k_block - at.first} * gpu::block_k,
                                    std::int64_t{end - k_block} * gpu::block_k});
    f.waits = waits_of(tile_read, k_block, end, set);
    visit(f);
  }
}

std::vector<factors::wait> gather_model::waits_of(const gpu::cta_read& tile_read, int k_block,
                                                  int end, int set) const {
  std::vector<factors::wait> waits;
  if (plan.protocol.senders_acquire) return waits;
  const gpu::gemm_plan& gemm = plan.gemm;
  // Each CTA of a cluster waits for its share of the N operand, and all multiply by the whole
  // operand.
  const int shares = gemm.config.swap_ab ? gemm.config.cluster : 1;
  for (int share = 0; share < shares; ++share) {
    const int row = gemm.config.swap_ab ? tile_read.a.begin + share * gemm.multicast_rows
                                        : tile_read.a_read.begin;
    const awaited_chunks what =
        segments.awaited(arrivals, set, row, tile_read.a_read.count, k_block, end);
    for (int i = 0; i < what.count(); ++i) {
      const int begin = std::max(what.end_of(i / what.rows, end), k_block);
      waits.push_back({std::int64_t{begin - k_block} * gpu::block_k, what.counter(i),
                       how.pulls() ? how.rank() : segments.sender_of(arrivals, what, i, k_block)});
    }
  }
  std::ranges::stable_sort(waits, {}, &factors::wait::depth);
  return waits;
}

device_findings check_gather(const all_gather_gemm_problem& problem, int ranks,
                             const operator_options& options, int multiprocessors) {
  return check(ranks, [&](int rank) {
    return gather_model(problem,
                        gather_plans(problem, ranks, rank, options, multiprocessors).front());
  });
}

device_findings check_row_gather(const all_gather_gemm_problem& problem, int ranks) {
  const row_gather_problem gather = row_gather_of(problem);
  const collective_need need = need_of(gather, ranks);
  device_findings findings;
  std::vector<schedule::rank_plan> plans;
  for (int rank = 0; rank < ranks; ++rank) {
    planned_collective planned =
        plan_collective(ranks, rank, need, {.direct = true}, memory_kind::cuda);
    if (rank == 0) findings.plan = std::move(planned.explanation);
    collective_plan& plan = planned.plan;
    // Each block has a share of every message in packets, which are read as chunks in rooms.
    if (plan.wire == wire_kind::packets)
      plan.chunk = std::max<std::int64_t>(ceil_div<std::int64_t>(plan.chunk, plan.workers), 1);
    const extent own{1, parts_of(gather, ranks).shards.of(rank).size};
    with_protocol_for(gather, plan, [&](const auto& protocol) {
      for (int i = 0; i < protocol.kernels(); ++i)
        findings.lanes += static_cast<std::size_t>(protocol.kernel_at(i).workers);
      // Two epochs for each set, so that every room is used twice.
      plans.emplace_back(program(protocol),
                         schedule::operand_extents{.a = own, .b = {}, .c = {1, gather.count}}, 4);
    });
  }
  const schedule::schedule_report report = schedule::check_schedule(plans);
  findings.steps = report.steps;
  findings.waits = report.waits;
  findings.faults = report.problems;
  return findings;
}

}  // namespace untax::plan_check
