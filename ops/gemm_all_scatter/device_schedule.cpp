#include "ops/gemm_all_scatter/device_schedule.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ops/common/nowhere.hpp"

namespace untax::plan_check {
namespace {

/// The problem with the most rows that a run has: they determine counters and flagged tiles.
gemm_all_scatter_problem most_of(gemm_all_scatter_problem problem, const scatter_plan& plan) {
  if (plan.protocol.capacity > 0) problem.m = plan.protocol.capacity;
  return problem;
}

}  // namespace

scatter_model::scatter_model(const gemm_all_scatter_problem& asked, const scatter_plan& planned)
    : problem(asked),
      plan(planned),
      how(plan.way == scatter_way::tile_flags ? most_of(problem, plan) : problem, plan.protocol),
      own_(how.tiles().cols.whole) {
  if (plan.protocol.capacity > 0) plan.set_rows(problem.m);
  if (plan.way == scatter_way::tile_flags) {
    lists = lists_of(how);
    tma_tile = tma_tile_of(how);
  }
  auto* const c =
      static_cast<std::byte*>(nowhere::pointer(nowhere::c + how.rank() * nowhere::span));
  maps = maps_of(problem, plan, how,
                 {nowhere::pointer(nowhere::a), nowhere::pointer(nowhere::b), c, nowhere::span});
  moved.run.world.rank = how.rank();
  moved.run.out = c;
  moved.run.between = nowhere::span;
  moved.c_stride = problem.n;
  const schedule::operand_extents sizes = operands();
  memory_.add(operand::a, how.rank(), nowhere::a, sizes.a);
  memory_.add(operand::b, how.rank(), nowhere::b, sizes.b);
  for (int rank = 0; rank < how.world(); ++rank)
    memory_.add(operand::c, rank, nowhere::c + rank * nowhere::span, sizes.c);
}

comm::sender_program scatter_model::says() const {
  comm::sender_program senders = comm::senders_of(how);
  senders.steps = [this, steps = senders.steps](int sender, std::uint64_t epoch,
                                                const program::sink& emit) {
    steps(sender, epoch, [&](step s) {
      const bool of_tile = s.acquire.named() && s.acquire.producer == s.acquire.consumer;
      const int tile = of_tile ? s.acquire.ready - how.tile_flag(0, 1).ready : 0;
      if (of_tile && how.tiles().rows_of(tile).begin >= problem.m) return;
      if (s.what == action::copy) s.rows = std::min(s.rows, problem.m - s.to.row);
      if (s.what != action::copy || s.rows > 0) emit(s);
    });
  };
  return senders;
}

schedule::operand_extents scatter_model::operands() const {
  return {{problem.m, problem.k}, {own_.size, problem.k}, {problem.m, problem.n}};
}

comm::sender_program scatter_model::does() const {
  comm::sender_program senders = says();
  if (plan.streams > 0) {
    senders.steps = memory_.moved_steps(moved, senders.steps);
  } else if (plan.way == scatter_way::tile_flags) {
    senders.steps = [this](int sender, std::uint64_t epoch, const program::sink& emit) {
      how.open(sender, epoch, emit);
      send_tiles(sender, epoch, emit);
      how.close(sender, epoch, emit);
    };
  }
  return changed(std::move(senders), change);
}

void scatter_model::send_tiles(int sender, std::uint64_t epoch, const program::sink& emit) const {
  const auto at = static_cast<std::size_t>(sender);
  for (int i = lists.begins.at(at); i < lists.begins.at(at + 1); ++i) {
    const comm::transfer& tile = lists.entries.at(static_cast<std::size_t>(i));
    // TMA clips its tiles where C ends, at the right and at the bottom.
    const gpu::tma_tiles_at& own = maps.tma_tiles.front();
    if (tile.row >= own.first.rows) continue;
    room flag = how.tile_flag(0, epoch);
    flag.number = flag.ready = tile.acquire;
    emit(step{.acquire = flag});
    std::int64_t rows = 0;
    for (std::int64_t row = 0; row < tile.rows; row += tma_tile.rows)
      rows += std::clamp<std::int64_t>(own.first.rows - tile.row - row, 0, own.tma_tile_rows);
    const std::int64_t cols =
        std::min<std::int64_t>(own.tma_tile_columns, own.first.columns - tile.col);
    for (int hop = 1; hop < how.world(); ++hop) {
      const gpu::matrix_at& peer_tiles = maps.tma_tiles[static_cast<std::size_t>(hop)].first;
      emit(step{.what = action::copy,
                .rows = rows,
                .cols = cols,
                .from = memory_.rectangle(own.first, tile.row, tile.col, rows, cols),
                .to = memory_.rectangle(peer_tiles, tile.row, tile.col, rows, cols),
                .reserve = how.landing(how.rank(), receiver_at_hop(how.rank(), hop, how.world()),
                                       sender, epoch)});
    }
  }
}

std::vector<std::string> scatter_model::faults() const {
  std::vector<std::string> texts;
  const auto expect = [&](bool right, const std::string& fault) {
    if (!right) texts.push_back(fault);
  };
  const int senders = plan.way == scatter_way::store_to_peers
                          ? how.publishers()
                          : plan.streams + plan.comm_ctas + plan.own_grid;
  expect(senders == plan.protocol.senders,
         fmt::format("{} senders instead of {}", senders, plan.protocol.senders));
  expect(plan.parts == storing_warpgroups(plan.gemm.config), "a tile has another number of parts");
  for (const gpu::tma_tiles_at& tiles : maps.tma_tiles) {
    expect(gpu::fits_tma(tma_tile, gpu::tma_tile_bytes), "a TMA tile cannot be so large");
    expect(tma_tile == gpu::tma_tile_size{tiles.tma_tile_rows, tiles.tma_tile_columns},
           "a TMA tile has another size than its map says");
  }
  // A single rank sends nothing, and waits for no flags.
  if (!texts.empty() || how.world() == 1) return texts;
  const std::string differs = difference(does(), says());
  expect(differs.empty(), differs);
  return texts;
}

schedule::lane_program scatter_model::lanes() const {
  const int counters = gemm_all_scatter_protocol(most_of(problem, plan), plan.protocol).counters();
  schedule::lane_program all(
      {how.rank(), how.world(), counters, {}, {}, tile_extent(plan.gemm.config)});
  if (plan.streams > 0) {
    add_copies(all);
    return all;
  }
  const std::vector<int> done = add_gemm(all, 0, {});
  if (plan.way == scatter_way::store_to_peers) {
    all.add([this](std::uint64_t epoch, const program::sink& emit) { how.open(0, epoch, emit); });
    all.add(done,
            [this](std::uint64_t epoch, const program::sink& emit) { how.close(0, epoch, emit); });
    return all;
  }
  all.begin_kernel("senders", plan.way == scatter_way::tile_flags ? 0 : 1,
                   schedule::lane_work::sends);
  const comm::sender_program sends = does();
  for (int i = 0; i < sends.count; ++i)
    all.add([=](std::uint64_t epoch, const program::sink& emit) { sends.steps(i, epoch, emit); });
  return all;
}

/// Adds the CTAs of a row split's kernel, which begin after flags; returns the flags that they
/// raise.
std::vector<int> scatter_model::add_gemm(schedule::lane_program& lanes, int split,
                                         const std::vector<int>& behind) const {
  lanes.begin_kernel("gemm", 0, schedule::lane_work::multiplies);
  if (own_.empty()) return {};
  gemm_lanes gemm;
  gemm.plan = &plan.gemm;
  gemm.k = problem.k;
  gemm.sets = how.sets();
  gemm.read = [this, split](const gpu::cta_read& tile_read, std::uint64_t, const auto& visit) {
    const auto& [a, c] = maps.row_splits[static_cast<std::size_t>(split)];
    const range columns{std::int64_t{tile_read.begin} * gpu::block_k,
                        std::int64_t{tile_read.end - tile_read.begin} * gpu::block_k};
    visit(
        memory_.multiplied(tile_read, a, tile_read.a.begin, maps.b, c, tile_read.a.begin, columns));
  };
  gemm.store = [this](const cta_work&, step tile, std::uint64_t epoch, const program::sink& emit) {
    const std::int64_t column = tile.to.col - own_.begin;
    if (plan.way == scatter_way::tile_flags)
      tile.publish = how.tile_flag(how.tile_at(tile.to.row, column), epoch);
    emit(tile);
    for (std::size_t i = 0; i < maps.copies.size(); ++i) {
      const int peer = receiver_at_hop(how.rank(), static_cast<int>(i) + 1, how.world());
      emit(step{.what = action::copy,
                .rows = tile.rows,
                .cols = tile.cols,
                .from = tile.to,
                .to = memory_.rectangle(maps.copies[i], tile.to.row, column, tile.rows, tile.cols),
                .reserve = how.landing(how.rank(), peer, 0, epoch)});
    }
  };
  const std::vector<std::vector<int>> all_behind(static_cast<std::size_t>(plan.gemm.blocks()),
                                                 behind);
  return plan_check::add_gemm(lanes, gemm, all_behind);
}

/// Row splits run one after the other. The results of one are copied while the next ones multiply,
/// when all ranks have opened their C.
void scatter_model::add_copies(schedule::lane_program& lanes) const {
  lanes.begin_kernel("open", 0, schedule::lane_work::meets);
  const int opened = lanes.add_flag();
  lanes.add(
      {}, [this](std::uint64_t epoch, const program::sink& emit) { how.meet(epoch, emit); },
      opened);
  std::vector<std::vector<int>> ended = {{}};  // before each row split, and after the last one
  const auto splits = static_cast<int>(maps.row_splits.size());
  for (int split = 0; split < splits; ++split)
    ended.push_back(add_gemm(lanes, split, ended.back()));
  lanes.begin_kernel("copies", 0, schedule::lane_work::sends);
  std::vector<int> copied = ended.back();
  copied.push_back(opened);
  const comm::sender_program sends = does();
  for (int i = 0; i < sends.count; ++i) {
    copied.push_back(lanes.add_flag());
    lanes.add(
        {opened},
        [=, this](std::uint64_t epoch, const program::sink& emit) {
          std::set<std::int64_t> known;
          sends.steps(i, epoch, [&](const step& s) {
            const std::int64_t split = s.from.row / plan.split_rows;
            if (known.insert(split).second && split < splits)
              for (const int flag : ended[static_cast<std::size_t>(split) + 1])
                emit(schedule::lane_program::awaits(how.rank(), flag, epoch));
            emit(s);
          });
        },
        copied.back());
  }
  lanes.begin_kernel("close", 0, schedule::lane_work::meets);
  lanes.add(copied,
            [this](std::uint64_t epoch, const program::sink& emit) { how.close(0, epoch, emit); });
}

device_findings check_scatter(const gemm_all_scatter_problem& problem, int ranks,
                              const operator_options& options, int multiprocessors) {
  return check(ranks, [&](int rank) {
    return scatter_model(problem,
                         scatter_plans(problem, ranks, rank, options, {multiprocessors}).front());
  });
}

}  // namespace untax::plan_check
