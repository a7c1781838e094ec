#include "ops/gemm_reduce_common/device_schedule.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/order.hpp>

#include "engines/gpu/gemm/cta_reads.hpp"

// The kernels of a planned sum, lane by lane.

namespace untax {
namespace {

using gpu::sum_fragment;
using gpu::sum_fragments;
using schedule::lane_program;

/// The fragments of a warp of a tile, as far as an owner wants them: what the model sends, and
/// adds, at once.
struct strip {
  sum_fragment first;
  range rows;
  range cols;
};

range common(std::int64_t begin, std::int64_t end, std::int64_t least, std::int64_t most) {
  const std::int64_t from = std::max(begin, least);
  return {from, std::max<std::int64_t>(std::min(end, most) - from, 0)};
}

strip strip_of(const sum_fragments& how, int owner, const sum_fragment& first) {
  const int row = how.row_of(first);
  const int col = how.col_of(first);
  const int along = how.parts * 8;
  return {first,
          common(row, row + (how.swap_ab ? along : 16), how.first_row(owner), how.end_row(owner)),
          common(col, col + (how.swap_ab ? 16 : along), 0, how.n)};
}
/// Calls `visit(strip)` for those of a block's tile that an owner wants.
template <class Visit>
void each_strip(const sum_fragments& how, int owner, int row_tile, int col_tile,
                const Visit& visit) {
  for (int group = 0; group < how.groups; ++group) {
    for (int warp = 0; warp < sum_fragments::warps; ++warp) {
      const strip s = strip_of(how, owner, {row_tile, col_tile, group, warp, 0});
      if (!s.rows.empty() && !s.cols.empty()) visit(s);
    }
  }
}

/// One rank.
struct sums_model {
  const device_sum& sum;
  const sums_plan& plan;

  [[nodiscard]] const sum_fragments& how() const { return plan.how; }
  [[nodiscard]] std::int64_t depth() const {
    return sharding{sum.k, how().world(), shard_granularity}.of(how().rank()).size;
  }
  [[nodiscard]] bool multiplies() const { return depth() > 0; }
  [[nodiscard]] std::int64_t slab_rows() const {
    return std::int64_t{how().most_tiles()} * how().tile_m;
  }
  /// Words tell of themselves that they have come; here a counter of each strip does.
  [[nodiscard]] int strips() const {
    return how().most_tiles() * how().col_tiles * how().groups * sum_fragments::warps;
  }
  [[nodiscard]] int counters() const {
    return how().counters() + sum_fragments::sets().sets * how().world() * strips();
  }
  [[nodiscard]] place in_inbox(int source, int owner, const strip& s, std::uint64_t epoch) const {
    return {operand::inbox, owner,
            how().slab_of(source, epoch) * slab_rows() + s.rows.begin -
                std::int64_t{how().first_tile(owner)} * how().tile_m,
            s.cols.begin};
  }
  [[nodiscard]] room slot(int source, int owner, const strip& s, std::uint64_t epoch) const {
    room r = how().slab(source, owner, epoch);
    r.ready = how().counters() + how().slab_of(source, epoch) * strips() +
              static_cast<int>(how().slot_of(owner, s.first)) / how().parts;
    r.number = r.ready;
    return r;
  }
};

/// What a CTA multiplies, and sends.
class cta_lane {
 public:
  cta_lane(const sums_model& m, std::uint64_t epoch, const program::sink& emit)
      : m_(m), how_(m.how()), epoch_(epoch), emit_(emit) {}

  template <class Sums, class Wait, class Raise>
  void run(int cta, const Sums& sums, const Wait& wait, const Raise& raise) const {
    const gpu::gemm_plan& gemm = m_.plan.gemm;
    gpu::each_read(gemm, cta, [&](const gpu::cta_read& of) {
      const int row = how_.turned(of.a.begin);
      const range rows = common(row, row + of.a.count, 0, how_.m);
      const range cols = common(of.b.begin, of.b.begin + of.b.count, 0, how_.n);
      if (!of.finishes) {
        if (!rows.empty()) read(of, rows);
        return raise(sums(cta));
      }
      if (of.begin > 0) {
        const int first = gemm.schedule.first_contributor(of.cluster, {of.tile, of.begin, of.end});
        for (int cluster = first; cluster < of.cluster; ++cluster)
          wait(sums(cta - (of.cluster - cluster) * cluster_blocks(gemm.config)));
      }
      if (!rows.empty() && !cols.empty()) send(rows, cols);
    });
  }
  /// A tile, by who has it whole.
  void send(range rows, range cols) const {
    const int rank = how_.rank();
    emit_(step{.what = action::multiply,
               .first = true,
               .last = true,
               .rows = rows.size,
               .cols = cols.size,
               .depth = m_.depth(),
               .from = {operand::a, rank, rows.begin, 0},
               .weights = {operand::b, rank, cols.begin, 0},
               .to = {operand::product, rank, 0, 0}});
    for (int hop = 1; hop <= how_.world(); ++hop) {
      const int owner = receiver_at_hop(rank, hop, how_.world());
      each_strip(how_, owner, static_cast<int>(rows.begin) / how_.tile_m,
                 static_cast<int>(cols.begin) / how_.tile_n, [&](const strip& s) {
                   const room filled = m_.slot(rank, owner, s, epoch_);
                   emit_(step{.what = action::store,
                              .rows = s.rows.size,
                              .cols = s.cols.size,
                              .from = {operand::product, rank, s.rows.begin - rows.begin,
                                       s.cols.begin - cols.begin},
                              .to = m_.in_inbox(rank, owner, s, epoch_),
                              .reserve = owner == rank ? room{} : filled,
                              .publish = filled});
                 });
    }
  }

 private:
  /// k-blocks whose sums are left to another CTA.
  void read(const gpu::cta_read& of, const range& rows) const {
    const std::int64_t begin = std::int64_t{of.begin} * gpu::block_k;
    const std::int64_t end = std::min(std::int64_t{of.end} * gpu::block_k, m_.depth());
    if (end <= begin) return;
    emit_(step{.what = action::copy,
               .rows = rows.size,
               .cols = end - begin,
               .from = {operand::a, how_.rank(), rows.begin, begin},
               .to = {operand::panel, how_.rank(), 0, begin}});
  }

  const sums_model& m_;
  const sum_fragments& how_;
  std::uint64_t epoch_;
  const program::sink& emit_;
};

/// Adds the lanes of one rank.
class lane_maker {
 public:
  explicit lane_maker(const sums_model& m)
      : m_(m),
        all_({m.how().rank(),
              m.how().world(),
              m.counters(),
              {sum_fragments::sets().sets * m.how().world() * m.slab_rows(),
               std::int64_t{m.how().col_tiles} * m.how().tile_n},
              {},
              {m.how().tile_m, m.how().tile_n}}) {}

  lane_program make() {
    all_.begin_kernel("gemm", 0);
    const int ctas = m_.multiplies() ? m_.plan.gemm.blocks() : m_.plan.own_grid;
    // Where CTAs that have multiplied add, their warps do each after its own sends.
    const bool itself = m_.multiplies() && m_.plan.comm_ctas == 0 && !m_.plan.beside;
    const int adding = itself                                     ? ctas
                       : m_.multiplies() && m_.plan.comm_ctas > 0 ? m_.plan.comm_ctas
                                                                  : m_.plan.own_grid;
    std::vector<int> sums;
    std::vector<int> added;
    for (int i = 0; i < ctas; ++i) sums.push_back(all_.add_flag());
    for (int i = 0; i < adding; ++i) added.push_back(all_.add_flag());
    const sums_model m = m_;
    const int rank = m_.how().rank();
    const auto add = [=](int me, std::uint64_t epoch, const program::sink& emit) {
      add_strips(m, me, adding, epoch, emit);
      emit(lane_program::raises(rank, added[static_cast<std::size_t>(me)], epoch));
    };
    for (int cta = 0; cta < ctas; ++cta) {
      all_.add([=](std::uint64_t epoch, const program::sink& emit) {
        const cta_lane lane(m, epoch, emit);
        if (m.multiplies()) {
          lane.run(
              cta, [&](int of) { return sums[static_cast<std::size_t>(of)]; },
              [&](int flag) { emit(lane_program::awaits(rank, flag, epoch)); },
              [&](int flag) { emit(lane_program::raises(rank, flag, epoch)); });
        } else {
          send_zeros(m, cta, ctas, lane);
        }
        if (itself) add(cta, epoch, emit);
      });
    }
    if (m_.plan.beside) all_.begin_kernel("add", 0);
    for (int me = 0; !itself && me < adding; ++me)
      all_.add([=](std::uint64_t epoch, const program::sink& emit) { add(me, epoch, emit); });
    all_.add([=](std::uint64_t epoch, const program::sink& emit) {
      for (const int flag : added) emit(lane_program::awaits(rank, flag, epoch));
      finish(m, epoch, emit);
    });
    return std::move(all_);
  }

 private:
  /// Products of no columns of A.
  static void send_zeros(const sums_model& m, int me, int all, const cta_lane& lane) {
    const sum_fragments& how = m.how();
    for (int tile = me; tile < how.row_tiles * how.col_tiles; tile += all) {
      const int row = tile / how.col_tiles * how.tile_m;
      const int col = tile % how.col_tiles * how.tile_n;
      const range rows = common(row, row + how.tile_m, 0, how.m);
      const range cols = common(col, col + how.tile_n, 0, how.n);
      if (!rows.empty() && !cols.empty()) lane.send(rows, cols);
    }
  }

  /// In the order of an owner, each of `adders` its share.
  static void add_strips(const sums_model& m, int me, int adders, std::uint64_t epoch,
                         const program::sink& emit) {
    const sum_fragments& how = m.how();
    const int rank = how.rank();
    for (int i = me; i < how.fragments_of(rank) / how.parts; i += adders) {
      const strip s = strip_of(how, rank, how.fragment_of(rank, i * how.parts));
      if (s.rows.empty() || s.cols.empty()) continue;
      for (int source = 0; source < how.world(); ++source)
        emit(step{.what = action::add,
                  .first = source == 0,
                  .rows = s.rows.size,
                  .cols = s.cols.size,
                  .from = m.in_inbox(source, rank, s, epoch),
                  .acquire = m.slot(source, rank, s, epoch)});
      for (int copy = 0; copy < (how.passes_on ? how.world() : 1); ++copy)
        emit(step{.what = action::store,
                  .rows = s.rows.size,
                  .cols = s.cols.size,
                  .from = {operand::sum, rank, 0, 0},
                  .to = {operand::c, receiver_at_hop(rank, copy, how.world()),
                         s.rows.begin - (how.passes_on ? 0 : how.first_row(rank)), s.cols.begin}});
    }
  }
  /// By the last warp to have added.
  static void finish(const sums_model& m, std::uint64_t epoch, const program::sink& emit) {
    const sum_fragments& how = m.how();
    const int rank = how.rank();
    const int peers = how.world() - 1;
    for (int hop = 1; hop <= peers; ++hop)
      emit(step{.retire = how.slab(source_at_hop(rank, hop, how.world()), rank, epoch)});
    if (!how.passes_on) return;
    for (int hop = 1; hop <= peers; ++hop)
      emit(step{.publish = how.landed(rank, receiver_at_hop(rank, hop, how.world()), epoch)});
    for (int hop = 1; hop <= peers; ++hop)
      emit(step{.acquire = how.landed(source_at_hop(rank, hop, how.world()), rank, epoch)});
  }

  const sums_model& m_;
  lane_program all_;
};

/// What blocks of a rank send.
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

  /// An owner takes every fragment of its rows once, each from a slot of its own.
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
    const std::int64_t all =
        std::int64_t{how_.end_row(owner) - how_.first_row(owner)} * std::int64_t{how_.n};
    expect(elements == all,
           fmt::format("owner {} takes {} elements instead of {}", owner, elements, all));
  }

  /// The tiles that blocks finish are all tiles, each once, where the own rows come last.
  void expect_sent() {
    std::map<std::pair<int, int>, int> tiles;
    gpu::each_read(plan_.gemm, [&](const gpu::cta_read& of) {
      if (!of.finishes) return;
      const int row = how_.turned(of.a.begin);
      expect(row % how_.tile_m == 0 && of.b.begin % how_.tile_n == 0,
             fmt::format("a block has {}, {}", row, of.b.begin));
      ++tiles[{row / how_.tile_m, of.b.begin / how_.tile_n}];
    });
    expect(tiles.size() ==
               static_cast<std::size_t>(how_.row_tiles) * static_cast<std::size_t>(how_.col_tiles),
           fmt::format("{} tiles are sent instead of {} x {}", tiles.size(), how_.row_tiles,
                       how_.col_tiles));
    for (const auto& [at, times] : tiles)
      expect(times == 1 && at.first < how_.row_tiles && at.second < how_.col_tiles,
             fmt::format("tile {}, {} is sent {} times", at.first, at.second, times));
    expect(how_.swap_ab == plan_.gemm.config.swap_ab &&
               how_.groups == storing_warpgroups(plan_.gemm.config) &&
               how_.parts * 8 == plan_.gemm.config.block_n,
           "threads hold their sums otherwise");
    expect(how_.row_tiles * how_.tile_m >= how_.m && how_.col_tiles * how_.tile_n >= how_.n,
           "tiles do not cover C");
  }

  static constexpr std::size_t most_faults = 8;
  const sums_plan& plan_;
  const sum_fragments& how_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> faults_of(const sums_plan& plan) { return fragment_check(plan).run(); }

void prove(const device_sum& sum, const std::vector<sums_plan>& ranks, device_findings& found) {
  constexpr std::uint64_t epochs = 4;
  device_schedule lanes;
  std::vector<schedule::operand_extents> operands;
  std::vector<sums_model> models;
  for (const sums_plan& plan : ranks) models.push_back({sum, plan});
  for (const sums_model& m : models) {
    lanes.push_back(lane_maker(m).make());
    const std::int64_t rows = sum.target == reduce_target::everywhere
                                  ? sum.m
                                  : sharding{sum.m, m.how().world()}.of(m.how().rank()).size;
    operands.push_back({{sum.m, m.depth()}, {sum.n, m.depth()}, {rows, sum.n}});
  }
  add_report(found, lanes, check_lanes(lanes, operands, epochs));
}

device_findings check_on_gpus(const device_sum& sum, int ranks, const operator_options& options,
                              int multiprocessors) {
  device_findings found;
  std::vector<sums_plan> plans;
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      const sums_plan& plan =
          plans.emplace_back(sums_plans(sum, ranks, rank, options, multiprocessors).front());
      if (rank == 0) found.plan = plan.text();
      if (plan.agreed() != plans.front().agreed())
        found.faults.push_back(fmt::format("rank {} plans otherwise than rank 0", rank));
      for (const std::string& fault : faults_of(plan))
        found.faults.push_back(fmt::format("rank {}: {}", rank, fault));
      found.transfers +=
          static_cast<std::size_t>(plan.how.fragments_of(rank)) * static_cast<std::size_t>(ranks);
    }
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw;
    found.refusal = e.what();
    return found;
  }
  if (found.faults.empty()) prove(sum, plans, found);
  return found;
}

}  // namespace untax
