#include <fmt/format.h>

#include "ops/merge_partial_attention/planning.hpp"
#include "ops/merge_partial_attention/protocol.hpp"
#include "ops/merge_partial_attention/workload.hpp"

namespace untax {
namespace {

/// A problem with a plan, for a number of ranks.
struct grid_case {
  merge_partial_attention_problem problem;
  merge_partial_attention_plan plan;  ///< of rank 0
  /// Rooms lie in two sets, so this many epochs use every room twice.
  std::uint64_t epochs = 4;

  [[nodiscard]] std::string name() const {
    return fmt::format(
        "merge_partial_attention {}: {} ranks, {} tokens, {} {} heads of {}, {} workers, {} "
        "senders, {} epochs",
        name_of(plan.how), plan.world, problem.tokens, problem.heads,
        problem.get == merged_heads::all ? "whole" : "shared", problem.head_dim, plan.workers,
        plan.senders, epochs);
  }
  [[nodiscard]] std::vector<schedule::rank_plan> plans() const {
    std::vector<schedule::rank_plan> all;
    const std::int64_t width = problem.head_dim + attention_statistics;
    for (int rank = 0; rank < plan.world; ++rank) {
      merge_partial_attention_plan own = plan;
      own.rank = rank;
      const std::int64_t heads = merge_partial_attention::heads_of(problem, plan.world, rank).size;
      all.emplace_back(
          program(merge_partial_attention_protocol(problem, own)),
          schedule::operand_extents{
              {problem.tokens * problem.heads, width}, {}, {problem.tokens * heads, width}},
          epochs);
    }
    return all;
  }
};

struct variant {
  pattern how;
  merged_heads get;
};

struct cut {
  int workers;
  int senders;
};

grid_case make_case(const variant& v, int ranks, const extent& tokens_and_heads,
                    std::int64_t head_dim, const cut& by) {
  grid_case c;
  c.problem.tokens = tokens_and_heads.rows;
  c.problem.heads = tokens_and_heads.cols;
  c.problem.head_dim = head_dim;
  c.problem.get = v.get;
  c.plan = {ranks, 0, v.how, by.workers, by.senders};
  return c;
}

std::vector<grid_case> schedule_grid(const variant& v, int ranks, bool quick) {
  std::vector<extent> sizes = {{1, 1}, {3, 4}};
  std::vector<cut> cuts = {{1, 1}, {2, 3}};
  if (!quick) {
    sizes.insert(sizes.end(), {{2, 8}, {5, 7}});
    cuts.push_back({3, 2});
  }
  std::vector<grid_case> cases;
  for (const extent& size : sizes) {
    for (const cut& by : cuts) cases.push_back(make_case(v, ranks, size, 2, by));
  }
  return cases;
}

std::vector<grid_case> model_grid(const variant& v, int ranks) {
  const int workers = ranks == 2 ? 2 : 1;
  return {// One head for all ranks: if ranks share the heads, all but one get none.
          make_case(v, ranks, {1, 1}, 1, {1, 1}),
          // Several workers, a head for each rank, and more tokens than workers.
          make_case(v, ranks, {3, ranks}, 1, {workers, 1})};
}

model::scenario scenario_of(const grid_case& c) {
  const auto part_of = [](int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    return model::sample(epoch * 16 + static_cast<std::uint64_t>(rank), row, col);
  };
  model::scenario s;
  s.name = c.name();
  s.plans = c.plans();
  s.a = part_of;
  s.b = [](int /*rank*/, std::int64_t /*row*/, std::int64_t /*col*/) { return std::uint64_t{0}; };
  s.expected = [=, problem = c.problem, world = c.plan.world](int rank, std::uint64_t epoch,
                                                              std::int64_t row, std::int64_t col) {
    const range heads = merge_partial_attention::heads_of(problem, world, rank);
    const std::int64_t at = row / heads.size * problem.heads + heads.begin + row % heads.size;
    std::uint64_t all = 0;
    for (int source = 0; source < world; ++source) all += part_of(source, epoch, at, col);
    return all;
  };
  return s;
}

}  // namespace

std::vector<protocol_variant> variants_of(const merge_entry& entry) {
  std::vector<protocol_variant> variants;
  for (const pattern how : merge_patterns) {
    for (const merged_heads get : {merged_heads::all, merged_heads::own}) {
      const variant v{how, get};
      const auto schedules = [v](int ranks, bool quick) {
        std::vector<schedule_case> cases;
        for (const grid_case& c : schedule_grid(v, ranks, quick))
          cases.push_back({c.name(), [c] { return c.plans(); }});
        return cases;
      };
      const auto scenarios = [v](int ranks) {
        std::vector<model::scenario> all;
        for (const grid_case& c : model_grid(v, ranks)) all.push_back(scenario_of(c));
        return all;
      };
      variants.push_back({fmt::format("{} {}{}", entry.name, name_of(how),
                                      get == merged_heads::own ? " own heads" : ""),
                          schedules, scenarios});
    }
  }
  return variants;
}

}  // namespace untax
