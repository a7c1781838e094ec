#include "ops/gemm_reduce_common/row_schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/nowhere.hpp"

namespace untax {
namespace {

constexpr std::size_t most_faults = 8;

/// Calls `visit(rows, cols)` for rectangles that are no larger than a tile.
template <class Visit>
void each_tile(const extent& tile, const range& rows, std::int64_t cols, const Visit& visit) {
  for (std::int64_t row = rows.begin; row < rows.end(); row += tile.rows) {
    for (std::int64_t col = 0; col < cols; col += tile.cols)
      visit(range{row, std::min(tile.rows, rows.end() - row)},
            range{col, std::min(tile.cols, cols - col)});
  }
}

}  // namespace

row_sums_model::row_sums_model(const device_sum& what, const row_sums_plan& planned)
    : sum(what), plan(planned), how_(planned.meetings()) {
  plan.set_rows(what.m);
  for (int hop = 0; hop < plan.world; ++hop)
    slabs.push_back(plan.slab_at(nowhere::inbox_of(plan.rank), hop, sum.n));
  for (int rank = 0; rank < plan.world; ++rank)
    memory_.add(operand::inbox, rank, nowhere::inbox + rank * nowhere::span,
                {plan.world * plan.slab_rows, sum.n});
}

std::int64_t row_sums_model::depth() const {
  return sharding{sum.k, plan.world, shard_granularity}.of(plan.rank).size;
}

std::vector<std::string> row_sums_model::faults() const {
  std::vector<std::string> found;
  const auto expect = [&](bool right, const std::string& what) {
    if (!right && found.size() < most_faults) found.push_back(what);
  };
  const gpu::tile_config& c = plan.gemm.config;
  const int high = c.swap_ab ? c.block_n : tile_rows(c) * c.cluster;
  const gpu::tile_schedule& order = plan.gemm.schedule;
  const int all = (c.swap_ab ? order.n_tiles : order.m_tiles) * high;
  expect(plan.owned.part == c_tma_tile_rows(c) && high % plan.owned.part == 0,
         fmt::format("tiles of {} rows are stored in parts of {}", high, plan.owned.part));
  expect(all >= sum.m && plan.owned.m == sum.m, "tiles do not cover the rows");
  std::vector<int> stored(static_cast<std::size_t>(plan.world));
  std::vector<bool> seen(static_cast<std::size_t>(std::max(all, 0)));
  for (int row = 0; row < all; row += plan.owned.part) {
    const int at = plan.turn.turned(row);
    if (at < 0 || at >= all || seen[static_cast<std::size_t>(at)])
      return {fmt::format("row {} is multiplied twice, or never", at)};
    seen[static_cast<std::size_t>(at)] = true;
    const int end = std::min(at + plan.owned.part, plan.owned.m);
    if (plan.everywhere) continue;
    const auto owners = plan.owned.of_part(at);
    for (int owner = owners.first; owner < owners.first + owners.count; ++owner) {
      if (owner < 0 || owner >= plan.world) return {fmt::format("rank {} owns rows", owner)};
      const int first = at - plan.owned.slab_begin(owner);
      expect(first >= 0, fmt::format("rows from {} on lie before the slab of {}", at, owner));
      stored[static_cast<std::size_t>(owner)] +=
          std::min(end, plan.owned.end(owner)) - std::max(at, plan.owned.first(owner));
    }
  }
  for (int owner = 0; owner < plan.world; ++owner) {
    const int rows = plan.owned.end(owner) - plan.owned.first(owner);
    expect(plan.everywhere || stored[static_cast<std::size_t>(owner)] == rows,
           fmt::format("owner {} gets {} rows instead of {}", owner,
                       stored[static_cast<std::size_t>(owner)], rows));
    expect(plan.owned.end(owner) - plan.owned.slab_begin(owner) <= plan.slab_rows,
           fmt::format("a slab of {} is too short", owner));
  }
  return found;
}

schedule::operand_extents row_sums_model::operands() const {
  const std::int64_t rows = sum.target == reduce_target::everywhere
                                ? sum.m
                                : sharding{sum.m, plan.world}.of(plan.rank).size;
  return {{sum.m, depth()}, {sum.n, depth()}, {rows, sum.n}};
}

plan_check::gemm_lanes row_sums_model::gemm() const {
  plan_check::gemm_lanes all;
  all.plan = &plan.gemm;
  all.k = depth();
  all.read = [this](const gpu::cta_read& of, std::uint64_t, const auto& visit) {
    const std::int64_t row = plan.turn.turned(static_cast<int>(of.a.begin));
    const std::int64_t begin = std::int64_t{of.begin} * gpu::block_k;
    const std::int64_t end = std::min(std::int64_t{of.end} * gpu::block_k, depth());
    visit(plan_check::factors{.rows = std::clamp<std::int64_t>(sum.m - row, 0, of.a.count),
                              .cols = std::clamp<std::int64_t>(sum.n - of.b.begin, 0, of.b.count),
                              .depth = std::max<std::int64_t>(end - begin, 0),
                              .a = {operand::a, plan.rank, row, begin},
                              .b = {operand::b, plan.rank, of.b.begin, begin},
                              .c = {operand::product, plan.rank, 0, 0},
                              .waits = {}});
  };
  all.store = [this](const step& tile, std::uint64_t epoch, const program::sink& emit) {
    emit(tile);
    store({tile.from.row, tile.rows}, {tile.weights.row, tile.cols}, epoch, emit);
  };
  return all;
}

/// Parts of a product: where TMA puts them, and as far as it does.
void row_sums_model::store(const range& rows, const range& cols, std::uint64_t epoch,
                           const program::sink& emit) const {
  for (std::int64_t row = rows.begin; row < rows.end(); row += plan.owned.part) {
    const auto owners = plan.everywhere ? gpu::owned_rows::owners{plan.rank, plan.world}
                                        : plan.owned.of_part(static_cast<int>(row));
    for (int i = 0; i < owners.count; ++i) {
      const int owner = (owners.first + i) % plan.world;
      const int hop = (owner - plan.rank + plan.world) % plan.world;
      const gpu::matrix_at& slab = slabs[static_cast<std::size_t>(hop)];
      const std::int64_t at = row - plan.owned.slab_begin(owner);
      const std::int64_t high = std::min<std::int64_t>(plan.owned.part, slab.rows - at);
      emit(step{.what = action::store,
                .rows = high,
                .cols = cols.size,
                .from = {operand::product, plan.rank, row - rows.begin, 0},
                .to = memory_.rectangle(slab, at, cols.begin, high, cols.size),
                .reserve =
                    hop == 0 ? room{}
                             : how_.landing(plan.rank, owner, row_sums_plan::parts_landed, epoch)});
    }
  }
}

/// Products of no columns of A.
void row_sums_model::send_zeros(std::uint64_t epoch, const program::sink& emit) const {
  each_tile({plan.owned.part, tile().cols}, {0, sum.m}, sum.n,
            [&](const range& rows, const range& cols) {
              emit(step{.what = action::multiply,
                        .first = true,
                        .last = true,
                        .rows = rows.size,
                        .cols = cols.size,
                        .from = {operand::a, plan.rank, rows.begin, 0},
                        .weights = {operand::b, plan.rank, cols.begin, 0},
                        .to = {operand::product, plan.rank, 0, 0}});
              store(rows, cols, epoch, emit);
            });
}

/// (partial of rank 0 + partial of rank 1) + ..., into C: a share of the own rows. The kernel is
/// behind all that has landed.
void row_sums_model::add(int me, const program::sink& emit) const {
  const int rank = plan.rank;
  const std::int64_t first = plan.owned.first(rank);
  const std::int64_t all = plan.owned.end(rank) - first;
  const std::int64_t begin = first + all * me / plan.adding;
  const std::int64_t end = first + all * (me + 1) / plan.adding;
  const std::int64_t result = sum.target == reduce_target::everywhere ? 0 : first;
  each_tile(tile(), {begin, end - begin}, sum.n, [&](const range& rows, const range& cols) {
    for (int source = 0; source < plan.world; ++source)
      emit(step{.what = action::add,
                .first = source == 0,
                .rows = rows.size,
                .cols = cols.size,
                .from = {operand::inbox, rank,
                         source * plan.slab_rows + rows.begin - plan.owned.slab_begin(rank),
                         cols.begin}});
    for (int hop = plan.passes_on ? 1 : plan.world; hop <= plan.world; ++hop)
      emit(step{.what = action::store,
                .rows = rows.size,
                .cols = cols.size,
                .from = {operand::sum, rank, 0, 0},
                .to = {operand::c, receiver_at_hop(rank, hop, plan.world), rows.begin - result,
                       cols.begin}});
  });
}

schedule::lane_program row_sums_model::lanes() const {
  schedule::lane_program all(
      {plan.rank, plan.world, how_.counters(), {plan.world * plan.slab_rows, sum.n}, {}, tile()});
  all.begin_kernel("gemm", 0);
  std::vector<int> multiplied;
  if (depth() > 0) {
    multiplied = plan_check::add_gemm(all, gemm());
  } else {
    multiplied.push_back(all.add_flag());
    all.add(
        {}, [this](std::uint64_t epoch, const program::sink& emit) { send_zeros(epoch, emit); },
        multiplied.back());
  }
  all.add([this](std::uint64_t epoch, const program::sink& emit) { how_.open(0, epoch, emit); });
  all.add(multiplied, [this](std::uint64_t epoch, const program::sink& emit) {
    how_.close(row_sums_plan::parts_landed, epoch, emit);
  });
  all.begin_kernel("add", 1);
  std::vector<int> added;
  for (int me = 0; me < plan.adding; ++me) {
    added.push_back(all.add_flag());
    all.add(
        {}, [this, me](std::uint64_t /*epoch*/, const program::sink& emit) { add(me, emit); },
        added.back());
  }
  if (plan.passes_on)
    all.add(added, [this](std::uint64_t epoch, const program::sink& emit) {
      how_.close(row_sums_plan::sums_landed, epoch, emit);
    });
  return all;
}

}  // namespace untax
