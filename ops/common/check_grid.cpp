#include "ops/common/workload.hpp"

#include <fmt/format.h>

#include "ops/common/summing_layout.hpp"

namespace untax {
namespace {

/// The split of a problem.
struct cut {
  int workers;
  int senders;
  std::int64_t tile_m;
  std::int64_t tile_n;
  std::int64_t panel_k;
  std::int64_t chunk_cross = 0;  // used if A is gathered, as the next three members
  bool gather_own = false;
  bool fan_out = false;
  int sets = 2;
  int raster_rows = 1;
  int k_interleave = 1;
};

struct shape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

bool can_pull(const operator_entry& entry, pattern how) {
  return entry.gathers && (how == pattern::producer_consumer || how == pattern::fused_specialized);
}

/// One configuration of an operator.
struct gemm_grid {
  using gemm_case = grid_case<gemm_problem, protocol_plan>;

  const operator_entry* entry = nullptr;
  pattern how = pattern::fused_sequential;
  gather_axis gather = gather_axis::rows;
  direction move = direction::push;
  int phases = 1;

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string name_of(const gemm_case& c) const;
  [[nodiscard]] std::vector<gemm_case> schedules(int ranks, bool quick) const;
  [[nodiscard]] std::vector<gemm_case> explored(int ranks) const;
  [[nodiscard]] schedule::rank_plan steps(const gemm_case& c, const protocol_plan& plan) const;
  [[nodiscard]] model::scenario values(const gemm_case& c) const;

 private:
  void scale_up(shape& size, cut& division) const;
  [[nodiscard]] gemm_case make(int ranks, shape size, cut division, bool in_units = false) const;
};

std::string gemm_grid::name() const {
  std::string text = fmt::format("{} {}", entry->name, untax::name_of(how));
  if (entry->gathers) text += fmt::format(", gather {}", untax::name_of(gather));
  if (can_pull(*entry, how)) text += fmt::format(", {}", untax::name_of(move));
  if (entry->phases) text += phases == 1 ? ", one phase" : ", two phases";
  return text;
}

std::string gemm_grid::name_of(const gemm_case& c) const {
  const protocol_plan& plan = c.plan;
  return fmt::format(
      "{}: {} ranks, m {}, n {}, k {}, {} workers, {} senders, tile {}x{}, panel {}{}{}{}{}{}{}, "
      "{} "
      "epochs",
      name(), plan.world, c.problem.m, c.problem.n, c.problem.k, plan.workers, plan.senders,
      plan.tile_m, plan.tile_n, plan.panel_k,
      plan.chunk_cross > 0 ? fmt::format(", chunks across {}", plan.chunk_cross) : "",
      plan.gather_own ? ", collected" : "", plan.fan_out ? ", spread" : "",
      plan.raster_rows != 1 ? fmt::format(", raster groups of {}", plan.raster_rows) : "",
      plan.k_interleave != 1 ? fmt::format(", {} starts", plan.k_interleave) : "",
      plan.sets != (plan.phases == 2 ? 1 : 2) ? fmt::format(", {} sets", plan.sets) : "", c.epochs);
}

/// If shards are multiples of `shard_granularity` elements, the sizes that are sharded or split are
/// multiplied by it: each element becomes such a unit.
void gemm_grid::scale_up(shape& size, cut& division) const {
  constexpr std::int64_t probe = 16 * shard_granularity;
  gemm_problem problem{.m = probe, .n = probe, .k = probe};
  problem.gather = gather;
  const gemm_share share = entry->share(problem, 2, 0);
  if (share.b_rows.size < probe) {
    size.n *= shard_granularity;
    division.tile_n *= shard_granularity;
  }
  if (share.a_cols.size < probe) {
    size.k *= shard_granularity;
    division.panel_k *= shard_granularity;
  }
}

gemm_grid::gemm_case gemm_grid::make(int ranks, shape size, cut division, bool in_units) const {
  if (in_units) scale_up(size, division);
  gemm_case c;
  c.problem = {.m = size.m, .n = size.n, .k = size.k};
  c.problem.gather = gather;
  c.plan = {.world = ranks,
            .rank = 0,
            .how = how,
            .move = move,
            .workers = division.workers,
            .senders = division.senders,
            .tile_m = division.tile_m,
            .tile_n = division.tile_n,
            .panel_k = division.panel_k,
            .chunk_cross = division.chunk_cross,
            .gather_own = division.gather_own,
            .fan_out = division.fan_out,
            .raster_rows = division.raster_rows,
            .k_interleave = division.k_interleave,
            // Bulk patterns have no rooms: the barrier and the other set separate one run from the
            // next.
            .sets = is_bulk(how) ? 2 : division.sets};
  set_phases(c.plan, phases);
  return c;
}

std::vector<gemm_grid::gemm_case> gemm_grid::schedules(int ranks, bool quick) const {
  std::vector<shape> shapes = {{1, 1, 1}, {37, 53, 72}};
  std::vector<cut> cuts = {{1, 1, 512, 512, 512},
                           {2, 1, 8, 16, 9},
                           {1, 2, 8, 16, 9, 0, false, false, 2, 2},
                           {1, 2, 8, 16, 9, 16, true},
                           {2, 2, 8, 16, 9, 24, false, true, 1, 2, 3}};
  if (!quick) {
    shapes = {{1, 1, 1},    {3, 5, 2},    {8, 8, 8},      {16, 24, 40},
              {37, 53, 72}, {64, 7, 129}, {333, 257, 130}};
    cuts = {{1, 1, 512, 512, 2048},
            {1, 1, 16, 32, 16},
            {2, 1, 24, 20, 33},
            {3, 2, 40, 64, 50},
            {2, 3, 24, 20, 33, 0, false, false, 2, 3},
            {1, 3, 16, 32, 16, 48, false},
            {2, 2, 20, 32, 64, 40, true},
            {2, 3, 16, 32, 24, 32, true, true, 2, 100},
            {1, 2, 16, 32, 24, 32, false, false, 2, 2},
            {2, 2, 20, 32, 64, 40, false, true, 1, 3, 2}};
  }
  if (!entry->gathers) {
    std::erase_if(cuts, [](const cut& division) {
      return division.chunk_cross != 0 || division.gather_own || division.fan_out ||
             division.sets != 2;
    });
  }
  return crossed(shapes, cuts, [&](const shape& size, const cut& division) {
    return make(ranks, size, division);
  });
}

std::vector<gemm_grid::gemm_case> gemm_grid::explored(int ranks) const {
  const auto size = static_cast<std::int64_t>(ranks);
  const auto cube = [](std::int64_t side) { return shape{side, side, side}; };
  const cut plain{1, 1, 1, 1, 1};
  const cut shared{ranks == 2 ? 2 : 1, 1, 1, 1, 1};
  const cut high{1, 1, size, 1, 1};
  std::vector<gemm_case> cases = {
      // One tile for each pair of ranks.
      make(ranks, cube(size), plain, true),
      // Sizes that are no multiples of the ranks; two workers, if there are threads for them.
      make(ranks, cube(2 * size - 1), shared, true),
      // All rows in one tile, and enough tiles to fill a ring of them more than once.
      make(ranks, {size, 3, size}, high, true)};
  // A shard in several chunks, and the rank's own shard is copied, too: within a rank that matters
  // only with two workers.
  if (entry->gathers && ranks == 2) {
    cases.push_back(make(ranks, cube(size), {2, 1, 1, 1, 1, 1, true}));
    // Each chunk goes to all peers in turn, and a room is used again in the very next run.
    cases.push_back(make(ranks, cube(size), {1, 1, 1, 1, 1, 1, false, true, 1, 2}));
  }
  if (ranks > 1) {
    // The last rank owns nothing and sends nothing that shows its progress, so only rooms make the
    // other ranks wait.
    cases.push_back(make(ranks, cube(size - 1), plain, true));
    // As above, with the rows of all owners computed together, through a ring that is too small.
    cases.push_back(make(ranks, {size - 1, 3, size - 1}, high, true));
  }
  if (phases == 2 && how == pattern::fused_sequential) {  // as the words of the GPU kernel do
    cases.push_back(cases[1]);
    cases.back().plan.sets = 2;
  }
  if (phases == 2 && how == pattern::fused_warp_specialized) {
    // The kernel that sends rows reserves in two phases as well, though only one phase needs it.
    gemm_grid one_phase = *this;
    one_phase.phases = 1;
    for (gemm_case& c : one_phase.explored(ranks)) cases.push_back(c);
  }
  return cases;
}

schedule::rank_plan gemm_grid::steps(const gemm_case& c, const protocol_plan& plan) const {
  const gemm_share share = entry->share(c.problem, plan.world, plan.rank);
  return {entry->protocol(c.problem, plan),
          {{share.a_rows.size, share.a_cols.size},
           {share.b_rows.size, share.b_cols.size},
           {share.c_rows.size, share.c_cols.size}},
          c.epochs};
}

model::scenario gemm_grid::values(const gemm_case& c) const {
  const auto share = [entry = entry, c](int rank) {
    return entry->share(c.problem, c.plan.world, rank);
  };
  // The whole A and B, of which each rank has its part.
  const auto whole_a = [](std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    return model::sample(epoch, row, col);
  };
  const auto whole_b = [](std::uint64_t of_rank, std::int64_t col, std::int64_t k) {
    return model::sample(1000 + of_rank, col, k);
  };
  model::scenario s;
  s.a = [=](int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    const gemm_share part = share(rank);
    return whole_a(epoch, part.a_rows.begin + row, part.a_cols.begin + col);
  };
  s.b = [=](int rank, std::int64_t col, std::int64_t k) {
    const gemm_share part = share(rank);
    return whole_b(part.b_of_rank, part.b_rows.begin + col, part.b_cols.begin + k);
  };
  s.expected = [=, depth = c.problem.k](int rank, std::uint64_t epoch, std::int64_t row,
                                        std::int64_t col) {
    const gemm_share part = share(rank);
    std::uint64_t sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      sum += whole_a(epoch, part.c_rows.begin + row, k) *
             whole_b(part.b_of_rank, part.c_cols.begin + col, k);
    }
    return sum;
  };
  return s;
}

}  // namespace

std::vector<protocol_variant> variants_of(const operator_entry& entry) {
  std::vector<protocol_variant> variants;
  std::vector<pattern> patterns(host_patterns.begin(), host_patterns.end());
  if (entry.copied) patterns.push_back(pattern::copy_engine);
  if (entry.sums_to) patterns.push_back(pattern::fused_warp_specialized);
  for (const pattern how : patterns) {
    if (how == pattern::automatic) continue;
    for (const auto gather : {gather_axis::rows, gather_axis::k}) {
      if (gather == gather_axis::k && !entry.gathers) continue;
      for (const int phases : {1, 2}) {
        if (phases == 1 || entry.phases)
          variants.push_back(checked(gemm_grid{&entry, how, gather, direction::push, phases}));
      }
      if (can_pull(entry, how))
        variants.push_back(checked(gemm_grid{&entry, how, gather, direction::pull}));
    }
  }
  return variants;
}

}  // namespace untax
