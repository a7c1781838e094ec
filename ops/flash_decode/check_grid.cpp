#include <fmt/format.h>

#include "ops/flash_decode/protocol.hpp"
#include "ops/flash_decode/workload.hpp"

namespace untax {
namespace {

/// A problem with a plan, for a number of ranks.
struct grid_case {
  flash_decode_problem problem;
  flash_decode_plan plan;  ///< of rank 0
  /// Rooms lie in two sets, so this many epochs use every room twice.
  std::uint64_t epochs = 4;

  [[nodiscard]] std::string name() const {
    return fmt::format(
        "flash_decode {}: {} ranks, batch {}, heads {} / {} of {}, {} workers, {} senders, {} "
        "splits, {} epochs",
        name_of(plan.how), plan.world, problem.batch, problem.heads, problem.kv_heads,
        problem.head_dim, plan.workers, plan.senders, plan.splits, epochs);
  }
  [[nodiscard]] std::int64_t items() const { return problem.batch * problem.kv_heads; }
  [[nodiscard]] std::vector<schedule::rank_plan> plans() const {
    std::vector<schedule::rank_plan> all;
    const extent rows{problem.batch * problem.heads, problem.head_dim};
    for (int rank = 0; rank < plan.world; ++rank) {
      flash_decode_plan own = plan;
      own.rank = rank;
      all.emplace_back(program(flash_decode_protocol(problem, own)),
                       schedule::operand_extents{rows, {items(), plan.splits}, rows}, epochs);
    }
    return all;
  }
};

struct cut {
  int workers;
  int senders;
  int splits;
};

struct shape {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};

grid_case make_case(pattern how, int ranks, const shape& size, const cut& by) {
  grid_case c;
  c.problem.batch = size.batch;
  c.problem.heads = size.heads;
  c.problem.kv_heads = size.kv_heads;
  c.problem.head_dim = size.head_dim;
  c.plan = {ranks, 0, how, by.workers, by.senders, by.splits};
  return c;
}

std::vector<grid_case> schedule_grid(pattern how, int ranks, bool quick) {
  std::vector<shape> shapes = {{1, 1, 1, 1}, {3, 4, 2, 2}};
  std::vector<cut> cuts = {{1, 1, 1}, {2, 1, 3}};
  if (!quick) {
    shapes.insert(shapes.end(), {{1, 8, 1, 3}, {2, 2, 2, 4}, {5, 6, 3, 1}});
    cuts.insert(cuts.end(), {{3, 2, 1}, {3, 2, 2}, {2, 3, 5}});
  }
  std::vector<grid_case> cases;
  for (const shape& size : shapes) {
    for (const cut& by : cuts) cases.push_back(make_case(how, ranks, size, by));
  }
  return cases;
}

std::vector<grid_case> model_grid(pattern how, int ranks) {
  const int workers = ranks == 2 ? 2 : 1;
  return {// One query and one element, so that a partial result is its statistics.
          make_case(how, ranks, {1, 1, 1, 1}, {1, 1, 1}),
          // Splits of several workers, and more items than workers.
          make_case(how, ranks, {3, 1, 1, 1}, {workers, 1, 2})};
}

model::scenario scenario_of(const grid_case& c) {
  const auto query = [](std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    return model::sample(epoch, row, col);
  };
  const auto split_of = [](int rank, std::int64_t item, std::int64_t split) {
    return model::sample(1000 + static_cast<std::uint64_t>(rank), item, split);
  };
  model::scenario s;
  s.name = c.name();
  s.plans = c.plans();
  s.a = [=](int /*rank*/, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    return query(epoch, row, col);
  };
  s.b = split_of;
  s.expected = [=, group = c.problem.heads / c.problem.kv_heads, plan = c.plan](
                   int /*rank*/, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    std::uint64_t all = 0;
    for (int rank = 0; rank < plan.world; ++rank) {
      for (int split = 0; split < plan.splits; ++split) all += split_of(rank, row / group, split);
    }
    return all * (query(epoch, row, col) + attention_statistics * query(epoch, row, 0));
  };
  return s;
}

}  // namespace

std::vector<protocol_variant> variants_of(const attention_entry& entry) {
  std::vector<protocol_variant> variants;
  for (const pattern how : host_patterns) {
    if (how == pattern::automatic) continue;
    const auto schedules = [how](int ranks, bool quick) {
      std::vector<schedule_case> cases;
      for (const grid_case& c : schedule_grid(how, ranks, quick))
        cases.push_back({c.name(), [c] { return c.plans(); }});
      return cases;
    };
    const auto scenarios = [how](int ranks) {
      std::vector<model::scenario> all;
      for (const grid_case& c : model_grid(how, ranks)) all.push_back(scenario_of(c));
      return all;
    };
    variants.push_back({fmt::format("{} {}", entry.name, name_of(how)), schedules, scenarios});
  }
  return variants;
}

}  // namespace untax
