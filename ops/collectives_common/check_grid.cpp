#include "ops/collectives_common/check_grid.hpp"

#include <fmt/format.h>

namespace untax {
namespace {

struct collective_variant {
  const collective_entry* entry = nullptr;
  pattern how = pattern::fused_sequential;
  int phases = 1;
  bool uneven = false;
  bool direct = false;
  bool pushes = false;
  bool keeps_apart = false;

  [[nodiscard]] std::string name() const {
    std::string text = fmt::format("{} {}", entry->name, name_of(how));
    if (entry->has_phases) text += phases == 1 ? ", one phase" : ", two phases";
    if (uneven) text += ", unequal parts";
    if (direct) text += ", direct";
    if (pushes) text += ", inputs through rooms";
    if (keeps_apart) text += ", keepers";
    return text;
  }
};

/// How a problem is split.
struct cut {
  int workers;
  std::int64_t chunk;
  int depth;
};

/// A variant with a problem and a plan, for a number of ranks.
struct grid_case {
  collective_variant what;
  collective_problem problem;
  cut by;
  int ranks;
  /// With two rooms in turn and one chunk in each epoch, so many epochs use every room twice.
  std::uint64_t epochs = 4;

  [[nodiscard]] collective_plan plan(int rank) const {
    collective_options options;
    options.how = what.how;
    options.phases = what.entry->has_phases ? what.phases : 0;
    options.workers = by.workers;
    options.chunk_bytes = by.chunk * static_cast<std::int64_t>(size_of(problem.type));
    options.depth = by.depth;
    options.serves = by.workers;
    options.direct = what.direct;
    if (what.pushes) options.inputs = input_path::rooms;
    if (what.keeps_apart) options.keepers = by.workers;
    return what.entry->plan(problem, ranks, rank, options);
  }
  [[nodiscard]] std::string name() const {
    return fmt::format("{}: {} ranks, count {}, root {}, {} workers, chunk {}, depth {}, {} epochs",
                       what.name(), ranks, problem.count, problem.root, by.workers, by.chunk,
                       by.depth, epochs);
  }
  [[nodiscard]] std::vector<schedule::rank_plan> plans() const {
    std::vector<schedule::rank_plan> all;
    for (int rank = 0; rank < ranks; ++rank)
      all.push_back(what.entry->schedule(problem, plan(rank), epochs));
    return all;
  }
};

grid_case make_case(const collective_variant& what, int ranks, std::int64_t count, const cut& by) {
  grid_case c{what, {.count = count}, by, ranks};
  c.problem.root = static_cast<int>(count % ranks);
  c.problem.uneven = what.uneven;
  return c;
}

std::vector<grid_case> schedule_cases(const collective_variant& what, int ranks, bool quick) {
  const std::vector<std::int64_t> counts =
      quick ? std::vector<std::int64_t>{1, 37} : std::vector<std::int64_t>{0, 1, 3, 8, 37, 129};
  const std::vector<cut> cuts = quick
                                    ? std::vector<cut>{{1, 64, 2}, {2, 5, 2}}
                                    : std::vector<cut>{{1, 64, 2}, {1, 4, 1}, {2, 5, 2}, {3, 7, 4}};
  std::vector<grid_case> cases;
  for (const std::int64_t count : counts) {
    for (const cut& by : cuts) cases.push_back(make_case(what, ranks, count, by));
  }
  return cases;
}

std::vector<grid_case> model_cases(const collective_variant& what, int ranks) {
  // For all_to_all a count is that of a part, for the others that of the whole.
  const std::int64_t each = what.entry->has_uneven ? 1 : ranks;
  std::vector<grid_case> cases = {// One chunk for each pair of ranks, in two rooms in turn.
                                  make_case(what, ranks, what.uneven ? 2 * each : each, {1, 2, 2}),
                                  // One room, so that it has to be free again within an epoch.
                                  make_case(what, ranks, 2 * each, {1, 1, 1}),
                                  // More chunks than rooms, and fewer for the last rank.
                                  make_case(what, ranks, 3 * each - 1, {1, 1, 2})};
  cases[1].epochs = cases[2].epochs = 2;
  // The last rank sends nothing that would show its progress.
  if (ranks > 1) cases.push_back(make_case(what, ranks, ranks - 1, {1, 1, 2}));
  if (ranks == 2 && what.how == pattern::fused_sequential)
    cases.push_back(make_case(what, ranks, 2 * each, {2, 1, 2}));
  return cases;
}

model::scenario scenario_of(const grid_case& c) {
  // The input of a rank is a row of numbers.
  const auto input = [](int rank, std::uint64_t epoch, std::int64_t i) {
    return model::sample(epoch, rank, i);
  };
  model::scenario s;
  s.name = c.name();
  s.plans = c.plans();
  s.a = [=](int rank, std::uint64_t epoch, std::int64_t /*row*/, std::int64_t col) {
    return input(rank, epoch, col);
  };
  s.b = [](int, std::int64_t, std::int64_t) { return std::uint64_t{0}; };
  s.expected = [=](int rank, std::uint64_t epoch, std::int64_t /*row*/, std::int64_t col) {
    const origin from = c.what.entry->origin_of(c.problem, c.ranks, rank, col);
    if (from.from >= 0) return input(from.from, epoch, from.index);
    std::uint64_t all = input(0, epoch, from.index);
    for (int peer = 1; peer < c.ranks; ++peer)
      all = combined(c.problem.how, all, input(peer, epoch, from.index));
    return all;
  };
  return s;
}

protocol_variant checked(const collective_variant& what) {
  const auto schedules = [what](int ranks, bool quick) {
    std::vector<schedule_case> cases;
    for (const grid_case& c : schedule_cases(what, ranks, quick))
      cases.push_back({c.name(), [c] { return c.plans(); }});
    return cases;
  };
  const auto scenarios = [what](int ranks) {
    std::vector<model::scenario> all;
    for (const grid_case& c : model_cases(what, ranks)) all.push_back(scenario_of(c));
    return all;
  };
  return {what.name(), schedules, scenarios};
}

}  // namespace

std::vector<protocol_variant> variants_of(const collective_entry& entry) {
  std::vector<protocol_variant> variants;
  for (const pattern how : collective_patterns) {
    for (const bool direct : {false, true}) {
      if (direct && how != pattern::fused_sequential) continue;
      for (const int phases : {1, 2}) {
        if (phases == 2 && !entry.has_phases) continue;
        variants.push_back(checked({&entry, how, phases, false, direct}));
        if (direct && phases == 2 && entry.combines)
          variants.push_back(checked({&entry, how, phases, false, direct, true}));
        if (direct && !entry.combines)
          variants.push_back(checked({&entry, how, phases, false, direct, false, true}));
        if (entry.has_uneven) variants.push_back(checked({&entry, how, phases, true, direct}));
      }
    }
  }
  return variants;
}

}  // namespace untax
