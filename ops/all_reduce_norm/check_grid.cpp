#include <fmt/format.h>

#include "ops/all_reduce_norm/planning.hpp"
#include "ops/all_reduce_norm/protocol.hpp"
#include "ops/all_reduce_norm/workload.hpp"

namespace untax {
namespace {

/// A problem and a plan for it, for a number of ranks.
struct grid_case {
  all_reduce_norm_problem problem;
  protocol_plan plan;  ///< of rank 0
  /// Rooms lie in two sets at most, so this many epochs use every room twice.
  std::uint64_t epochs = 4;

  [[nodiscard]] std::string name() const {
    return fmt::format(
        "all_reduce_norm {}: {} ranks, {} tokens of {}, {} phases, {} workers, {} senders, tiles "
        "of {} rows, {} epochs",
        name_of(plan.how), plan.world, problem.tokens, problem.hidden, plan.phases, plan.workers,
        plan.senders, plan.tile_m, epochs);
  }
  [[nodiscard]] std::vector<schedule::rank_plan> plans() const {
    std::vector<schedule::rank_plan> all;
    const extent rows{problem.tokens, problem.hidden};
    for (int rank = 0; rank < plan.world; ++rank) {
      protocol_plan own = plan;
      own.rank = rank;
      all.emplace_back(program(all_reduce_norm_protocol(problem, own)),
                       schedule::operand_extents{rows, {}, {rows.rows, 2 * rows.cols}}, epochs);
    }
    return all;
  }
};

/// One way to carry the operator out.
struct way {
  pattern how;
  int phases;
};

struct cut {
  int workers;
  int senders;
  std::int64_t tile_m;
};

grid_case make_case(const way& w, int ranks, std::int64_t tokens, std::int64_t hidden,
                    const cut& by) {
  grid_case c;
  c.problem.tokens = tokens;
  c.problem.hidden = hidden;
  c.plan = {.world = ranks,
            .rank = 0,
            .how = w.how,
            .workers = by.workers,
            .senders = by.senders,
            .phases = w.phases,
            .tile_m = by.tile_m,
            .tile_n = hidden};
  return c;
}

std::vector<grid_case> schedule_grid(const way& w, int ranks, bool quick) {
  std::vector<std::int64_t> tokens = {1, 13};
  std::vector<cut> cuts = {{1, 1, 64}, {2, 1, 2}};
  if (!quick) {
    tokens.insert(tokens.end(), {3, 8, 40});
    cuts.insert(cuts.end(), {{3, 2, 1}, {2, 3, 4}, {1, 2, 3}});
  }
  std::vector<grid_case> cases;
  for (const std::int64_t count : tokens) {
    for (const cut& by : cuts) cases.push_back(make_case(w, ranks, count, 3, by));
  }
  return cases;
}

std::vector<grid_case> model_grid(const way& w, int ranks) {
  const int workers = ranks == 2 ? 2 : 1;
  std::vector<grid_case> cases = {// One row for each rank.
                                  make_case(w, ranks, ranks, 2, {1, 1, 1}),
                                  // Several tiles, and rows that the ranks do not divide.
                                  make_case(w, ranks, 2 * ranks - 1, 1, {workers, 1, 1})};
  // The last rank owns nothing.
  if (ranks > 1) cases.push_back(make_case(w, ranks, ranks - 1, 1, {1, 1, 1}));
  return cases;
}

model::scenario scenario_of(const grid_case& c) {
  const auto part = [](int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    return model::sample(epoch, row * 31 + rank, col);
  };
  model::scenario s;
  s.name = c.name();
  s.plans = c.plans();
  s.a = part;
  s.b = [](int, std::int64_t, std::int64_t) { return std::uint64_t{0}; };
  s.expected = [=, world = c.plan.world, hidden = c.problem.hidden](
                   int /*rank*/, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    const auto sum = [&](std::int64_t at) {
      std::uint64_t all = 0;
      for (int rank = 0; rank < world; ++rank) all += part(rank, epoch, row, at);
      return all;
    };
    if (col < hidden) return sum(col);
    std::uint64_t normed = sum(col - hidden);
    for (std::int64_t at = 0; at < hidden; ++at) normed += sum(at);
    return normed;
  };
  return s;
}

}  // namespace

std::vector<protocol_variant> variants_of(const norm_entry& entry) {
  std::vector<protocol_variant> variants;
  for (const pattern how : host_patterns) {
    if (!norm_has_pattern(how)) continue;
    for (const int phases : {1, 2}) {
      const way w{how, phases};
      const auto schedules = [w](int ranks, bool quick) {
        std::vector<schedule_case> cases;
        for (const grid_case& c : schedule_grid(w, ranks, quick))
          cases.push_back({c.name(), [c] { return c.plans(); }});
        return cases;
      };
      const auto scenarios = [w](int ranks) {
        std::vector<model::scenario> all;
        for (const grid_case& c : model_grid(w, ranks)) all.push_back(scenario_of(c));
        return all;
      };
      variants.push_back({fmt::format("{} {}, {}", entry.name, name_of(how),
                                      phases == 1 ? "one phase" : "two phases"),
                          schedules, scenarios});
    }
  }
  return variants;
}

}  // namespace untax
