#include <fmt/format.h>

#include "ops/all_reduce_norm/planning.hpp"
#include "ops/all_reduce_norm/protocol.hpp"
#include "ops/all_reduce_norm/spec.hpp"
#include "ops/all_reduce_norm/workload.hpp"

namespace untax {
namespace {

struct cut {
  int workers;
  int senders;
  std::int64_t tile_m;
};

/// A pattern, in one phase or in two.
struct norm_grid {
  using norm_case = grid_case<all_reduce_norm_problem, protocol_plan>;

  pattern how;
  int phases;

  [[nodiscard]] std::string name() const {
    return fmt::format("{} {}, {}", all_reduce_norm_name, untax::name_of(how),
                       phases == 1 ? "one phase" : "two phases");
  }
  [[nodiscard]] static std::string name_of(const norm_case& c) {
    return fmt::format(
        "all_reduce_norm {}: {} ranks, {} tokens of {}, {} phases, {} workers, {} senders, tiles "
        "of {} rows, {} sets, {} epochs",
        untax::name_of(c.plan.how), c.plan.world, c.problem.tokens, c.problem.hidden, c.plan.phases,
        c.plan.workers, c.plan.senders, c.plan.tile_m, c.plan.sets, c.epochs);
  }

  [[nodiscard]] norm_case make(int ranks, std::int64_t tokens, std::int64_t hidden,
                               const cut& division) const {
    norm_case c;
    c.problem.tokens = tokens;
    c.problem.hidden = hidden;
    c.plan = {.world = ranks,
              .rank = 0,
              .how = how,
              .workers = division.workers,
              .senders = division.senders,
              .tile_m = division.tile_m,
              .tile_n = hidden};
    set_phases(c.plan, phases);
    return c;
  }
  [[nodiscard]] std::vector<norm_case> schedules(int ranks, bool quick) const {
    std::vector<std::int64_t> tokens = {1, 13};
    std::vector<cut> cuts = {{1, 1, 64}, {2, 1, 2}};
    if (!quick) {
      tokens.insert(tokens.end(), {3, 8, 40});
      cuts.insert(cuts.end(), {{3, 2, 1}, {2, 3, 4}, {1, 2, 3}});
    }
    return crossed(tokens, cuts, [&](std::int64_t count, const cut& division) {
      return make(ranks, count, 3, division);
    });
  }
  [[nodiscard]] std::vector<norm_case> explored(int ranks) const {
    std::vector<norm_case> cases = {// One row for each rank.
                                    make(ranks, ranks, 2, {1, 1, 1}),
                                    // Several tiles, and a number of rows that is no multiple of
                                    // the ranks.
                                    make(ranks, 2 * ranks - 1, 1, {ranks == 2 ? 2 : 1, 1, 1})};
    // The last rank owns no rows.
    if (ranks > 1) cases.push_back(make(ranks, ranks - 1, 1, {1, 1, 1}));
    cases.push_back(cases[1]);
    cases.back().plan.sets = 2;  // two sets, as the words of the GPU kernel have in two phases
    return cases;
  }

  [[nodiscard]] static schedule::rank_plan steps(const norm_case& c, const protocol_plan& plan) {
    const extent rows{c.problem.tokens, c.problem.hidden};
    return {program(all_reduce_norm_protocol(c.problem, plan)),
            {rows, {}, {rows.rows, 2 * rows.cols}},
            c.epochs};
  }
  [[nodiscard]] static model::scenario values(const norm_case& c) {
    const auto part = [](int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
      return model::sample(epoch, row * 31 + rank, col);
    };
    model::scenario s;
    s.a = part;
    s.expected = [=, world = c.plan.world, hidden = c.problem.hidden](
                     int /*rank*/, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
      const auto sum = [&](std::int64_t at) {
        std::uint64_t parts = 0;
        for (int rank = 0; rank < world; ++rank) parts += part(rank, epoch, row, at);
        return parts;
      };
      if (col < hidden) return sum(col);
      std::uint64_t normed = sum(col - hidden);
      for (std::int64_t at = 0; at < hidden; ++at) normed += sum(at);
      return normed;
    };
    return s;
  }
};

}  // namespace

std::vector<protocol_variant> spec_of<all_reduce_norm>::variants() {
  std::vector<protocol_variant> variants;
  for (const pattern how : host_patterns) {
    if (!norm_has_pattern(how)) continue;
    for (const int phases : {1, 2}) variants.push_back(checked(norm_grid{how, phases}));
  }
  return variants;
}

}  // namespace untax
