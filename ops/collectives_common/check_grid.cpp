#include "ops/collectives_common/workload.hpp"

#include <fmt/format.h>

namespace untax {
namespace {

/// The split of a problem at a rank.
struct split {
  int world;
  int rank;
  int workers;
  std::int64_t chunk;
  int depth;
};

struct collective_grid {
  using collective_case = grid_case<collective_problem, split>;

  const collective_entry* entry = nullptr;
  pattern how = pattern::fused_sequential;
  int phases = 1;
  bool uneven = false;
  bool direct = false;
  bool pushes = false;
  bool keeps_apart = false;

  [[nodiscard]] std::string name() const {
    std::string text = fmt::format("{} {}", entry->name, untax::name_of(how));
    if (entry->has_phases) text += phases == 1 ? ", one phase" : ", two phases";
    if (uneven) text += ", unequal parts";
    if (direct) text += ", direct";
    if (pushes) text += ", inputs through rooms";
    if (keeps_apart) text += ", keepers";
    return text;
  }
  [[nodiscard]] std::string name_of(const collective_case& c) const {
    return fmt::format("{}: {} ranks, count {}, root {}, {} workers, chunk {}, depth {}, {} epochs",
                       name(), c.plan.world, c.problem.count, c.problem.root, c.plan.workers,
                       c.plan.chunk, c.plan.depth, c.epochs);
  }

  [[nodiscard]] collective_case make(std::int64_t count, const split& division) const {
    collective_case c{{.count = count}, division};
    c.problem.root = static_cast<int>(count % division.world);
    c.problem.uneven = uneven;
    return c;
  }
  [[nodiscard]] std::vector<collective_case> schedules(int ranks, bool quick) const {
    std::vector<std::int64_t> counts = {1, 37};
    std::vector<split> splits = {{ranks, 0, 1, 64, 2}, {ranks, 0, 2, 5, 2}};
    if (!quick) {
      counts = {0, 1, 3, 8, 37, 129};
      splits = {
          {ranks, 0, 1, 64, 2}, {ranks, 0, 1, 4, 1}, {ranks, 0, 2, 5, 2}, {ranks, 0, 3, 7, 4}};
    }
    return crossed(counts, splits, [&](std::int64_t count, const split& division) {
      return make(count, division);
    });
  }
  [[nodiscard]] std::vector<collective_case> explored(int ranks) const {
    // The count of all_to_all is that of a part, the count of other collectives that of the whole.
    const std::int64_t each = entry->has_uneven ? 1 : ranks;
    std::vector<collective_case> cases = {
        // One chunk for each pair of ranks, in two rooms in turn.
        make(uneven ? 2 * each : each, {ranks, 0, 1, 2, 2}),
        // One room, so that it has to be emptied again within an epoch.
        make(2 * each, {ranks, 0, 1, 1, 1}),
        // More chunks than rooms, and fewer for the last rank.
        make(3 * each - 1, {ranks, 0, 1, 1, 2})};
    cases[1].epochs = cases[2].epochs = 2;
    // The last rank sends nothing, so no message shows its progress.
    if (ranks > 1) cases.push_back(make(ranks - 1, {ranks, 0, 1, 1, 2}));
    if (ranks == 2 && how == pattern::fused_sequential)
      cases.push_back(make(2 * each, {ranks, 0, 2, 1, 2}));
    return cases;
  }

  [[nodiscard]] schedule::rank_plan steps(const collective_case& c, const split& division) const {
    collective_options options;
    options.how = how;
    options.phases = entry->has_phases ? phases : 0;
    options.workers = division.workers;
    options.chunk_bytes = division.chunk * static_cast<std::int64_t>(size_of(c.problem.type));
    options.depth = division.depth;
    options.serves = division.workers;
    options.direct = direct;
    if (pushes) options.inputs = input_path::rooms;
    if (keeps_apart) options.keepers = division.workers;
    const std::int64_t in = entry->in_count(c.problem, division.world, division.rank);
    const std::int64_t out = entry->out_count(c.problem, division.world, division.rank);
    const collective_plan plan = entry->plan(c.problem, division.world, division.rank, options);
    return {entry->program_of(c.problem, plan), {{1, in}, {}, {1, out}}, c.epochs};
  }
  [[nodiscard]] model::scenario values(const collective_case& c) const {
    // The input of a rank is a row of numbers.
    const auto input = [](int rank, std::uint64_t epoch, std::int64_t i) {
      return model::sample(epoch, rank, i);
    };
    model::scenario s;
    s.a = [=](int rank, std::uint64_t epoch, std::int64_t /*row*/, std::int64_t col) {
      return input(rank, epoch, col);
    };
    s.expected = [=, entry = entry](int rank, std::uint64_t epoch, std::int64_t /*row*/,
                                    std::int64_t col) {
      const origin from = entry->origin_of(c.problem, c.plan.world, rank, col);
      if (from.from >= 0) return input(from.from, epoch, from.index);
      std::uint64_t value = input(0, epoch, from.index);
      for (int peer = 1; peer < c.plan.world; ++peer)
        value = combined(c.problem.how, value, input(peer, epoch, from.index));
      return value;
    };
    return s;
  }
};

}  // namespace

std::vector<protocol_variant> variants_of(const collective_entry& entry) {
  std::vector<protocol_variant> variants;
  for (const pattern how : collective_patterns) {
    for (const bool direct : {false, true}) {
      if (direct && how != pattern::fused_sequential) continue;
      for (const int phases : {1, 2}) {
        if (phases == 2 && !entry.has_phases) continue;
        variants.push_back(checked(collective_grid{&entry, how, phases, false, direct}));
        if (direct && phases == 2 && entry.combines)
          variants.push_back(checked(collective_grid{&entry, how, phases, false, direct, true}));
        if (direct && !entry.combines)
          variants.push_back(
              checked(collective_grid{&entry, how, phases, false, direct, false, true}));
        if (entry.has_uneven)
          variants.push_back(checked(collective_grid{&entry, how, phases, true, direct}));
      }
    }
  }
  return variants;
}

}  // namespace untax
