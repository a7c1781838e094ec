#include "ops/gemm_reduce_common/device_schedule.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/order.hpp>

#include "engines/gpu/gemm/cta_reads.hpp"
#include "ops/common/nowhere.hpp"
#include "ops/plan_check/check.hpp"

namespace untax {
namespace {

constexpr std::size_t most_faults = 8;

using gpu::sum_fragment;
using gpu::sum_fragments;

range common(std::int64_t begin, std::int64_t end, std::int64_t least, std::int64_t most) {
  const std::int64_t from = std::max(begin, least);
  return {from, std::max<std::int64_t>(std::min(end, most) - from, 0)};
}

sum_strip strip_of(const sum_fragments& how, int owner, const sum_fragment& first) {
  const int row = how.row_of(first);
  const int col = how.col_of(first);
  const int along = how.parts * 8;
  return {first,
          common(row, row + (how.swap_ab ? along : 16), how.first_row(owner), how.end_row(owner)),
          common(col, col + (how.swap_ab ? 16 : along), 0, how.n)};
}
/// Calls `visit(strip)` for the strips of a block's tile that belong to an owner.
template <class Visit>
void each_strip(const sum_fragments& how, int owner, int row_tile, int col_tile,
                const Visit& visit) {
  for (int group = 0; group < how.groups; ++group) {
    for (int warp = 0; warp < sum_fragments::warps; ++warp) {
      const sum_strip s = strip_of(how, owner, {row_tile, col_tile, group, warp, 0});
      if (!s.rows.empty() && !s.cols.empty()) visit(s);
    }
  }
}

/// Checks the fragments that blocks of a rank send.
class fragment_check {
 public:
  explicit fragment_check(const sums_plan& plan) : plan_(plan), how_(plan.how) {}

  std::vector<std::string> run() {
    for (int owner = 0; owner < how_.world(); ++owner) expect_taken(owner);
    if (faults_.empty()) expect_sent();
    return faults_;
  }

 private:
  void expect(bool right, const std::string& what) {
    if (!right && faults_.size() < most_faults) faults_.push_back(what);
  }

  /// An owner takes each fragment of its rows once, from a slot of its own.
  void expect_taken(int owner) {
    std::vector<bool> slots(static_cast<std::size_t>(how_.of_slab()));
    std::int64_t elements = 0;
    for (int i = 0; i < how_.fragments_of(owner); ++i) {
      const sum_fragment f = how_.fragment_of(owner, i);
      const std::int64_t slot = how_.slot_of(owner, f);
      if (slot < 0 || slot >= how_.of_slab() || slots[static_cast<std::size_t>(slot)])
        return expect(false, fmt::format("owner {}: fragment {} has slot {}", owner, i, slot));
      slots[static_cast<std::size_t>(slot)] = true;
      if (!how_.wanted(owner, f)) continue;
      elements += common(how_.row_of(f), how_.row_of(f) + how_.fragment_rows(),
                         how_.first_row(owner), how_.end_row(owner))
                      .size *
                  common(how_.col_of(f), how_.col_of(f) + how_.fragment_cols(), 0, how_.n).size;
    }
    const std::int64_t tile_count =
        std::int64_t{how_.end_row(owner) - how_.first_row(owner)} * std::int64_t{how_.n};
    expect(elements == tile_count,
           fmt::format("owner {} takes {} elements instead of {}", owner, elements, tile_count));
  }

  /// Blocks finish each tile exactly once, in an order in which the rank's own rows come last.
  void expect_sent() {
    std::map<std::pair<int, int>, int> tiles;
    gpu::each_read(plan_.gemm, [&](const gpu::cta_read& tile_read) {
      if (!tile_read.finishes) return;
      const int row = how_.rotated(tile_read.a.begin);
      expect(row % how_.tile_m == 0 && tile_read.b.begin % how_.tile_n == 0,
             fmt::format("a block has {}, {}", row, tile_read.b.begin));
      ++tiles[{row / how_.tile_m, tile_read.b.begin / how_.tile_n}];
    });
    expect(tiles.size() ==
               static_cast<std::size_t>(how_.row_tiles) * static_cast<std::size_t>(how_.col_tiles),
           fmt::format("{} tiles are sent instead of {} x {}", tiles.size(), how_.row_tiles,
                       how_.col_tiles));
    for (const auto& [at, times] : tiles)
      expect(times == 1 && at.first < how_.row_tiles && at.second < how_.col_tiles,
             fmt::format("tile {}, {} is sent {} times", at.first, at.second, times));
    for (int owner = 0; owner < how_.world(); ++owner) expect_sent_to(owner);
    expect(how_.swap_ab == plan_.gemm.config.swap_ab &&
               how_.groups == storing_warpgroups(plan_.gemm.config) &&
               how_.parts * 8 == plan_.gemm.config.block_n,
           "threads hold their sums otherwise");
    expect(how_.row_tiles * how_.tile_m >= how_.m && how_.col_tiles * how_.tile_n >= how_.n,
           "tiles do not cover C");
  }

  /// A rank sends an owner the rows that the owner takes and resets; it sends none to an owner
  /// without rows.
  void expect_sent_to(int owner) {
    const int step = how_.fragment_rows();
    const int strips = how_.row_tiles * (how_.tile_m / step);
    for (int strip = 0; strip < strips; ++strip) {
      sum_fragment f;
      f.row_tile = strip / (how_.tile_m / step);
      const int in_tile = strip % (how_.tile_m / step);
      if (how_.swap_ab) {
        f.part = in_tile;
      } else {
        f.group = in_tile / sum_fragments::warps;
        f.warp = in_tile % sum_fragments::warps;
      }
      const int row = how_.row_of(f);
      const bool taken =
          !common(row, row + step, how_.first_row(owner), how_.end_row(owner)).empty();
      expect(how_.wanted(owner, f) == taken,
             fmt::format("rows from {} on are {} owner {}", row,
                         taken ? "not sent to" : "sent to, and never taken by,", owner));
    }
  }

  const sums_plan& plan_;
  const sum_fragments& how_;
  std::vector<std::string> faults_;
};

}  // namespace

std::int64_t sums_model::slab_rows() const {
  return std::int64_t{how().tiles_of_slab()} * how().tile_m;
}
/// In the kernel each word is its own signal. Here a counter of each strip stands for the words.
int sums_model::strips() const {
  return how().tiles_of_slab() * how().col_tiles * how().groups * sum_fragments::warps;
}
place sums_model::in_inbox(int source, int owner, const sum_strip& s, std::uint64_t epoch) const {
  return {operand::inbox, owner,
          how().slab_of(source, epoch) * slab_rows() + s.rows.begin -
              std::int64_t{how().first_tile(owner)} * how().tile_m,
          s.cols.begin};
}
room sums_model::slot(int source, int owner, const sum_strip& s, std::uint64_t epoch) const {
  room r = how().slab(source, owner, epoch);
  r.ready = how().counters() + how().slab_of(source, epoch) * strips() +
            static_cast<int>(how().slot_of(owner, s.first)) / how().parts;
  r.number = r.ready;
  return r;
}

std::vector<std::string> sums_model::faults() const { return fragment_check(plan).run(); }

/// The GEMM. A tile is sent by the block that has all of its sums.
plan_check::gemm_lanes sums_model::gemm() const {
  plan_check::gemm_lanes lanes =
      plan_check::partial_products(plan.gemm, operands(), how().rank(), how().rotation());
  lanes.store = [this](const plan_check::cta_work&, const step& tile, std::uint64_t epoch,
                       const program::sink& emit) {
    emit(tile);
    send({tile.from.row, tile.rows}, {tile.weights.row, tile.cols}, epoch, emit);
  };
  return lanes;
}

/// Sends a tile that has been multiplied.
void sums_model::send(const range& rows, const range& cols, std::uint64_t epoch,
                      const program::sink& emit) const {
  const int rank = how().rank();
  for (int hop = 1; hop <= how().world(); ++hop) {
    const int owner = receiver_at_hop(rank, hop, how().world());
    each_strip(
        how(), owner, static_cast<int>(rows.begin) / how().tile_m,
        static_cast<int>(cols.begin) / how().tile_n, [&](const sum_strip& s) {
          const room filled = slot(rank, owner, s, epoch);
          emit(step{.what = action::store,
                    .rows = s.rows.size,
                    .cols = s.cols.size,
                    .from = {operand::product, rank, s.rows.begin - rows.begin,
                             s.cols.begin - cols.begin},
                    .to = in_inbox(rank, owner, s, epoch),
                    .reserve = owner == rank || !reserves || !how().reserves() ? room{} : filled,
                    .publish = filled});
        });
  }
}

/// Sends products over no columns of A: zeros.
void sums_model::send_zeros(int me, int count, std::uint64_t epoch,
                            const program::sink& emit) const {
  for (int tile = me; tile < how().row_tiles * how().col_tiles; tile += count) {
    const int row = tile / how().col_tiles * how().tile_m;
    const int col = tile % how().col_tiles * how().tile_n;
    const range rows = common(row, row + how().tile_m, 0, how().m);
    const range cols = common(col, col + how().tile_n, 0, how().n);
    if (rows.empty() || cols.empty()) continue;
    emit(step{.what = action::multiply,
              .first = true,
              .last = true,
              .rows = rows.size,
              .cols = cols.size,
              .from = {operand::a, how().rank(), rows.begin, 0},
              .weights = {operand::b, how().rank(), cols.begin, 0},
              .to = {operand::product, how().rank(), 0, 0}});
    send(rows, cols, epoch, emit);
  }
}

/// (partial of rank 0 + partial of rank 1) + ..., into C.
void sums_model::add_strip(const sum_strip& s, std::uint64_t epoch,
                           const program::sink& emit) const {
  if (s.rows.empty() || s.cols.empty()) return;
  const int rank = how().rank();
  how().add(
      s.rows.size, s.cols.size, [&](int source) { return in_inbox(source, rank, s, epoch); },
      [&](int source) { return slot(source, rank, s, epoch); }, emit);
  for (int copy = 0; copy < (how().passes_on ? how().world() : 1); ++copy)
    emit(step{.what = action::store,
              .rows = s.rows.size,
              .cols = s.cols.size,
              .from = {operand::sum, rank, 0, 0},
              .to = {operand::c, receiver_at_hop(rank, copy, how().world()),
                     s.rows.begin - (how().passes_on ? 0 : how().first_row(rank)), s.cols.begin}});
}
/// Each of `adders` adds its share, in the order of the owner.
void sums_model::add_share(int me, int adders, std::uint64_t epoch,
                           const program::sink& emit) const {
  for (int i = me; i < how().fragments_of(how().rank()) / how().parts; i += adders)
    add_strip(strip_of(how(), how().rank(), how().fragment_of(how().rank(), i * how().parts)),
              epoch, emit);
}
/// Adds a block's own tiles as late as possible: after the block has sent everything. The kernel
/// adds tiles that have arrived earlier, without a wait.
void sums_model::add_own(int block, std::uint64_t epoch, const program::sink& emit) const {
  gpu::each_read(plan.gemm, block, [&](const gpu::cta_read& tile_read) {
    if (tile_read.finishes)
      each_strip(how(), how().rank(), how().rotated(tile_read.a.begin) / how().tile_m,
                 tile_read.b.begin / how().tile_n,
                 [&](const sum_strip& s) { add_strip(s, epoch, emit); });
  });
}
/// The steps of the last warp to have added.
void sums_model::finish(std::uint64_t epoch, const program::sink& emit) const {
  if (!how().reserves()) return;
  how().retire_slabs(epoch, 0, emit);
  if (how().passes_on)
    how().close_sums(
        epoch, 0, [](int) { return true; }, emit);
}

schedule::lane_program sums_model::lanes() const {
  schedule::lane_program all(
      {how().rank(),
       how().world(),
       how().counters() + sets() * how().world() * strips(),
       {sets() * how().world() * slab_rows(), std::int64_t{how().col_tiles} * how().tile_n},
       {},
       {how().tile_m, how().tile_n}});
  const bool multiplies = operands().a.cols > 0;
  // Blocks that have multiplied also add, each after its own sends; or separate blocks add.
  const bool itself = multiplies && plan.comm_ctas == 0 && !plan.beside;
  const int adders = itself                             ? plan.gemm.blocks()
                     : multiplies && plan.comm_ctas > 0 ? plan.comm_ctas
                                                        : plan.own_grid;
  all.begin_kernel("gemm", 0, schedule::lane_work::multiplies);
  const auto zeros = [this](int me, std::uint64_t epoch, const program::sink& emit) {
    send_zeros(me, plan.own_grid, epoch, emit);
  };
  const std::vector<int> multiplied =
      multiplies ? plan_check::add_gemm(all, gemm()) : all.add_each(plan.own_grid, zeros);
  all.begin_kernel("add", 0, schedule::lane_work::adds);
  std::vector<std::vector<int>> behind;
  for (const int flag : multiplied)
    if (itself) behind.push_back({flag});
  const auto add = [=, this](int me, std::uint64_t epoch, const program::sink& emit) {
    if (itself) return add_own(me, epoch, emit);
    add_share(me, adders, epoch, emit);
  };
  const std::vector<int> added = all.add_each(adders, add, behind);
  all.begin_kernel("finish", 0, schedule::lane_work::meets);
  all.add(added, [this](std::uint64_t epoch, const program::sink& emit) { finish(epoch, emit); });
  return all;
}

row_sums_model::row_sums_model(const device_sum& what, const row_sums_plan& planned)
    : sum(what), plan(planned), how_(planned.exchange(what)) {
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
    gpu::each_read(plan.gemm, cta, [&](const gpu::cta_read& tile_read) {
      const int number = mine.count++;
      const std::int64_t row = plan.rotation.rotated(static_cast<int>(tile_read.a.begin));
      const range rows{row, std::clamp<std::int64_t>(sum.m - row, 0, tile_read.a.count)};
      const std::int64_t col = tile_read.b.begin;
      const range cols{col, std::clamp<std::int64_t>(sum.n - col, 0, tile_read.b.count)};
      if (tile_read.finishes) mine.tiles.push_back({number, rows, cols});
      for (const part& p : parts_of(rows, cols)) {
        if (plan.everywhere || peers_own_some(p)) mine.last_sent = number;
      }
    });
  }
}

std::vector<std::string> row_sums_model::faults() const {
  std::vector<std::string> texts;
  const auto expect = [&](bool right, const std::string& what) {
    if (!right && texts.size() < most_faults) texts.push_back(what);
  };
  const gpu::tile_config& c = plan.gemm.config;
  const int high = c.swap_ab ? c.block_n : cluster_rows(c);
  const gpu::tile_schedule& order = plan.gemm.schedule;
  const int tile_count = (c.swap_ab ? order.n_tiles : order.m_tiles) * high;
  expect(plan.owned.part_rows == c_tma_tile_rows(c) && high % plan.owned.part_rows == 0,
         fmt::format("tiles of {} rows are stored in parts of {}", high, plan.owned.part_rows));
  expect(tile_count >= sum.m && plan.owned.m == sum.m, "tiles do not cover the rows");
  std::vector<int> stored(static_cast<std::size_t>(plan.world));
  std::vector<bool> seen(static_cast<std::size_t>(std::max(tile_count, 0)));
  for (int row = 0; row < tile_count; row += plan.owned.part_rows) {
    const int at = plan.rotation.rotated(row);
    if (at < 0 || at >= tile_count || seen[static_cast<std::size_t>(at)])
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
  // `landed_partials` waits for peers in the last tile of a block, so that tile must have no rows
  // of other owners.
  for (int row = 0; row < plan.owned.m && plan.world > 1 && !plan.adds_behind; row += high) {
    const int last = std::min(row + high, plan.owned.m) - 1;
    expect(!plan.everywhere && row / plan.owned.owner_rows == last / plan.owned.owner_rows,
           fmt::format("blocks that multiply add rows {} to {}, which have several owners", row,
                       last));
  }
  return texts;
}

plan_check::gemm_lanes row_sums_model::gemm() const {
  plan_check::gemm_lanes lanes =
      plan_check::partial_products(plan.gemm, operands(), plan.rank, plan.rotation);
  lanes.store = [this](const plan_check::cta_work& work, const step& tile, std::uint64_t epoch,
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
  return lanes;
}

std::vector<row_sums_model::part> row_sums_model::parts_of(const range& rows,
                                                           const range& cols) const {
  std::vector<part> parts;
  for (std::int64_t row = rows.begin; row < rows.end(); row += plan.owned.part_rows)
    parts.push_back({{row, std::min<std::int64_t>(plan.owned.part_rows, rows.end() - row)}, cols});
  return parts;
}

/// Whether a part is added when it is handed over. After a block's last send this depends on the
/// speed of peers. The model takes either all parts, or the even parts in one run and the odd parts
/// in the next.
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
              .reserve = hop == 0 ? room{} : how_.slab(plan.rank, owner, epoch)});
  }
}

void row_sums_model::acquire_parts(std::uint64_t epoch, const program::sink& emit) const {
  for (int hop = 1; hop < plan.world; ++hop) {
    emit(step{.acquire = how_.slab(source_at_hop(plan.rank, hop, plan.world), plan.rank, epoch)});
  }
}

void row_sums_model::add(const part& p, std::optional<std::int64_t> product_row,
                         const program::sink& emit) const {
  const int rank = plan.rank;
  const std::int64_t result = sum.target == reduce_target::everywhere ? 0 : plan.owned.first(rank);
  const auto from = [&](int source) -> place {
    if (product_row && source == rank) return {operand::product, rank, *product_row, 0};
    const std::int64_t row = p.rows.begin - plan.owned.slab_begin(rank);
    return {operand::inbox, rank, source * plan.slab_rows + row, p.cols.begin};
  };
  how_.add(
      p.rows.size, p.cols.size, from, [](int) { return room{}; }, emit);
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
  std::vector<int> added = plan_check::add_gemm(all, blocks);
  all.add([this](std::uint64_t epoch, const program::sink& emit) {
    how_.retire_slabs(epoch, 0, emit);
  });
  all.add(sent, [this](std::uint64_t epoch, const program::sink& emit) {
    how_.close_slabs(epoch, 0, emit);
  });
  if (plan.adds_behind) {
    all.begin_kernel("add", 1, schedule::lane_work::adds);
    added = all.add_each(
        plan.adding, [this](int me, std::uint64_t, const program::sink& emit) { add(me, emit); });
  }
  if (plan.passes_on)
    all.add(added,
            [this](std::uint64_t epoch, const program::sink& emit) { how_.close(0, epoch, emit); });
  return all;
}

device_findings check_on_gpus(const device_sum& sum, int ranks, const operator_options& options,
                              int multiprocessors) {
  if (options.how == pattern::fused_warp_specialized)
    return plan_check::check(ranks, [&](int rank) {
      return row_sums_model(sum,
                            row_sums_plans(sum, ranks, rank, options, {multiprocessors}).front());
    });
  std::size_t fragments = 0;
  device_findings findings = plan_check::check(ranks, [&](int rank) {
    sums_model m(sum, sums_plans(sum, ranks, rank, options, {multiprocessors}).front());
    fragments += static_cast<std::size_t>(m.plan.how.fragments_of(rank));
    return m;
  });
  if (findings.refusal.empty()) findings.transfers = fragments * static_cast<std::size_t>(ranks);
  return findings;
}

}  // namespace untax
