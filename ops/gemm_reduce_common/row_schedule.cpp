#include "ops/gemm_reduce_common/row_schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/nowhere.hpp"

namespace untax {
namespace {

constexpr std::size_t most_faults = 8;

}  // namespace

row_sums_model::row_sums_model(const device_sum& what, const row_sums_plan& planned)
    : sum(what), plan(planned), how_(planned.meetings()) {
  plan.set_rows(what.m);
  plan_works();
  for (int hop = 0; hop < plan.world; ++hop)
    slabs.push_back(plan.slab_at(nowhere::inbox_of(plan.rank), hop, sum.n));
  for (int rank = 0; rank < plan.world; ++rank)
    memory_.add(operand::inbox, rank, nowhere::inbox + rank * nowhere::span,
                {plan.world * plan.slab_rows, sum.n});
}

/// Lists the works of each CTA in the order of its epilogue.
void row_sums_model::plan_works() {
  const auto peers_own_some = [&](const part& p) {
    const auto owners = plan.owned.of_part(static_cast<int>(p.rows.begin));
    return owners.count > 1 || owners.first != plan.rank;
  };
  works_.assign(static_cast<std::size_t>(plan.gemm.blocks()), {});
  for (int cta = 0; cta < plan.gemm.blocks(); ++cta) {
    cta_works& mine = works_[static_cast<std::size_t>(cta)];
    gpu::each_read(plan.gemm, cta, [&](const gpu::cta_read& of) {
      const int number = mine.count++;
      const std::int64_t row = plan.rotation.rotated(static_cast<int>(of.a.begin));
      const range rows{row, std::clamp<std::int64_t>(sum.m - row, 0, of.a.count)};
      const std::int64_t col = of.b.begin;
      const range cols{col, std::clamp<std::int64_t>(sum.n - col, 0, of.b.count)};
      if (of.finishes) mine.tiles.push_back({number, rows, cols});
      for (const part& p : parts_of(rows, cols)) {
        if (plan.everywhere || peers_own_some(p)) mine.last_sent = number;
      }
    });
  }
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
  const int high = c.swap_ab ? c.block_n : cluster_rows(c);
  const gpu::tile_schedule& order = plan.gemm.schedule;
  const int all = (c.swap_ab ? order.n_tiles : order.m_tiles) * high;
  expect(plan.owned.part_rows == c_tma_tile_rows(c) && high % plan.owned.part_rows == 0,
         fmt::format("tiles of {} rows are stored in parts of {}", high, plan.owned.part_rows));
  expect(all >= sum.m && plan.owned.m == sum.m, "tiles do not cover the rows");
  std::vector<int> stored(static_cast<std::size_t>(plan.world));
  std::vector<bool> seen(static_cast<std::size_t>(std::max(all, 0)));
  for (int row = 0; row < all; row += plan.owned.part_rows) {
    const int at = plan.rotation.rotated(row);
    if (at < 0 || at >= all || seen[static_cast<std::size_t>(at)])
      return {fmt::format("row {} is multiplied twice, or never", at)};
    seen[static_cast<std::size_t>(at)] = true;
    const int end = std::min(at + plan.owned.part_rows, plan.owned.m);
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
  // `landed_partials` waits for peers in the last tile of a block, which has to be all its own
  // then.
  for (int row = 0; row < plan.owned.m && plan.world > 1 && !plan.adds_behind; row += high) {
    const int last = std::min(row + high, plan.owned.m) - 1;
    expect(!plan.everywhere && row / plan.owned.owner_rows == last / plan.owned.owner_rows,
           fmt::format("blocks that multiply add rows {} to {}, which have several owners", row,
                       last));
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
    const std::int64_t row = plan.rotation.rotated(static_cast<int>(of.a.begin));
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
  all.store = [this](const plan_check::cta_work& work, const step& tile, std::uint64_t epoch,
                     const program::sink& emit) {
    emit(tile);
    for (const part& p : parts_of({tile.from.row, tile.rows}, {tile.weights.row, tile.cols})) {
      if (!is_sum(work, p, epoch)) {
        send(p, p.rows.begin - tile.from.row, epoch, emit);
        continue;
      }
      acquire_parts(epoch, emit);
      add(p, p.rows.begin - tile.from.row, emit);
    }
  };
  return all;
}

std::vector<row_sums_model::part> row_sums_model::parts_of(const range& rows,
                                                           const range& cols) const {
  std::vector<part> parts;
  for (std::int64_t row = rows.begin; row < rows.end(); row += plan.owned.part_rows)
    parts.push_back({{row, std::min<std::int64_t>(plan.owned.part_rows, rows.end() - row)}, cols});
  return parts;
}

/// After a block's last send, it depends on peers whether a part is added as it is handed over.
/// Here every part is, or every other one, and in the next run the others.
bool row_sums_model::is_sum(const plan_check::cta_work& work, const part& p,
                            std::uint64_t epoch) const {
  const auto row = static_cast<int>(p.rows.begin);
  const int number = work.number + row / plan.owned.part_rows;
  return !plan.adds_behind && plan.owned.has_part(plan.rank, row) &&
         work.number > works_[static_cast<std::size_t>(work.cta)].last_sent &&
         (in_time || (static_cast<std::uint64_t>(number) + epoch) % 2 == 0);
}

/// Sends a part of a product: the rectangle that TMA stores, to where TMA stores it.
void row_sums_model::send(const part& p, std::int64_t product_row, std::uint64_t epoch,
                          const program::sink& emit) const {
  const auto owners = plan.everywhere ? gpu::owned_rows::owners{plan.rank, plan.world}
                                      : plan.owned.of_part(static_cast<int>(p.rows.begin));
  for (int i = 0; i < owners.count; ++i) {
    const int owner = (owners.first + i) % plan.world;
    const int hop = (owner - plan.rank + plan.world) % plan.world;
    const gpu::matrix_at& slab = slabs[static_cast<std::size_t>(hop)];
    const std::int64_t at = p.rows.begin - plan.owned.slab_begin(owner);
    const std::int64_t high = std::min<std::int64_t>(plan.owned.part_rows, slab.rows - at);
    emit(step{.what = action::store,
              .rows = high,
              .cols = p.cols.size,
              .from = {operand::product, plan.rank, product_row, 0},
              .to = memory_.rectangle(slab, at, p.cols.begin, high, p.cols.size),
              .reserve = hop == 0
                             ? room{}
                             : how_.landing(plan.rank, owner, row_sums_plan::parts_landed, epoch)});
  }
}

void row_sums_model::acquire_parts(std::uint64_t epoch, const program::sink& emit) const {
  for (int hop = 1; hop < plan.world; ++hop) {
    step landed;
    landed.acquire = how_.landing(source_at_hop(plan.rank, hop, plan.world), plan.rank,
                                  row_sums_plan::parts_landed, epoch);
    emit(landed);
  }
}

void row_sums_model::add(const part& p, std::optional<std::int64_t> product_row,
                         const program::sink& emit) const {
  const int rank = plan.rank;
  const std::int64_t result = sum.target == reduce_target::everywhere ? 0 : plan.owned.first(rank);
  for (int source = 0; source < plan.world; ++source)
    emit(step{.what = action::add,
              .first = source == 0,
              .rows = p.rows.size,
              .cols = p.cols.size,
              .from = product_row && source == rank ? place{operand::product, rank, *product_row, 0}
                                                    : place{operand::inbox, rank,
                                                            source * plan.slab_rows + p.rows.begin -
                                                                plan.owned.slab_begin(rank),
                                                            p.cols.begin}});
  for (int hop = plan.passes_on ? 1 : plan.world; hop <= plan.world; ++hop)
    emit(step{.what = action::store,
              .rows = p.rows.size,
              .cols = p.cols.size,
              .from = {operand::sum, rank, 0, 0},
              .to = {operand::c, receiver_at_hop(rank, hop, plan.world), p.rows.begin - result,
                     p.cols.begin}});
}

/// Adds a share of the own rows, after all parts have landed.
void row_sums_model::add(int me, const program::sink& emit) const {
  const std::int64_t first = plan.owned.first(plan.rank);
  const std::int64_t rows = plan.owned.end(plan.rank) - first;
  const std::int64_t begin = first + rows * me / plan.adding;
  const std::int64_t end = first + rows * (me + 1) / plan.adding;
  for (const part& p : parts_of({begin, end - begin}, {})) {
    for (std::int64_t col = 0; col < sum.n; col += tile().cols)
      add({p.rows, {col, std::min(tile().cols, sum.n - col)}}, {}, emit);
  }
}

/// Adds own rows of the tiles of a CTA, unless they were handed over as sums.
void row_sums_model::add_rest(int cta, std::uint64_t epoch, const program::sink& emit) const {
  acquire_parts(epoch, emit);
  for (const cta_works::tile& tile : works_[static_cast<std::size_t>(cta)].tiles) {
    for (const part& p : parts_of(tile.rows, tile.cols)) {
      const std::int64_t begin = std::max<std::int64_t>(p.rows.begin, plan.owned.first(plan.rank));
      const std::int64_t end = std::min<std::int64_t>(p.rows.end(), plan.owned.end(plan.rank));
      if (begin < end && !is_sum({cta, tile.number}, p, epoch))
        add({{begin, end - begin}, p.cols}, {}, emit);
    }
  }
}

/// Adds CTAs that send products over no columns of A: zeros.
std::vector<int> row_sums_model::add_zeros(schedule::lane_program& all,
                                           const plan_check::gemm_lanes& gemm) const {
  std::vector<int> ended;
  for (int cta = 0; cta < plan.gemm.blocks(); ++cta) {
    ended.push_back(all.add_flag());
    const cta_works mine = works_[static_cast<std::size_t>(cta)];
    all.add(
        {},
        [=, rank = plan.rank](std::uint64_t epoch, const program::sink& emit) {
          for (int number = 0; number <= mine.count; ++number) {
            gemm.before({cta, number}, epoch, emit);
            for (const cta_works::tile& tile : mine.tiles) {
              if (tile.number != number || tile.rows.size == 0 || tile.cols.size == 0) continue;
              gemm.store({cta, number},
                         step{.what = action::multiply,
                              .first = true,
                              .last = true,
                              .rows = tile.rows.size,
                              .cols = tile.cols.size,
                              .from = {operand::a, rank, tile.rows.begin, 0},
                              .weights = {operand::b, rank, tile.cols.begin, 0},
                              .to = {operand::product, rank, 0, 0}},
                         epoch, emit);
            }
          }
        },
        ended.back());
  }
  return ended;
}

schedule::lane_program row_sums_model::lanes() const {
  schedule::lane_program all(
      {plan.rank, plan.world, how_.counters(), {plan.world * plan.slab_rows, sum.n}, {}, tile()});
  all.begin_kernel("gemm", 0, schedule::lane_work::multiplies);
  std::vector<int> sent;
  for (int cta = 0; cta < plan.gemm.blocks(); ++cta) sent.push_back(all.add_flag());
  plan_check::gemm_lanes blocks = gemm();
  blocks.before = [this, sent](const plan_check::cta_work& work, std::uint64_t epoch,
                               const program::sink& emit) {
    const cta_works& mine = works_[static_cast<std::size_t>(work.cta)];
    if (work.number == mine.last_sent + 1)
      emit(schedule::lane_program::raises(plan.rank, sent[static_cast<std::size_t>(work.cta)],
                                          epoch));
    if (work.number == mine.count && !plan.adds_behind) add_rest(work.cta, epoch, emit);
  };
  const std::vector<int> ended =
      depth() > 0 ? plan_check::add_gemm(all, blocks) : add_zeros(all, blocks);
  all.add([this](std::uint64_t epoch, const program::sink& emit) { how_.open(0, epoch, emit); });
  const auto close = [this, &all](const std::vector<int>& behind, int output) {
    all.add(behind, [this, output](std::uint64_t epoch, const program::sink& emit) {
      how_.close(output, epoch, emit);
    });
  };
  close(sent, row_sums_plan::parts_landed);
  std::vector<int> added = ended;
  if (plan.adds_behind) {
    all.begin_kernel("add", 1, schedule::lane_work::adds);
    added.clear();
    for (int me = 0; me < plan.adding; ++me) {
      added.push_back(all.add_flag());
      all.add(
          {}, [this, me](std::uint64_t /*epoch*/, const program::sink& emit) { add(me, emit); },
          added.back());
    }
  }
  if (plan.passes_on) close(added, row_sums_plan::sums_landed);
  return all;
}

}  // namespace untax
