#include <fmt/format.h>

#include "ops/merge_partial_attention/planning.hpp"
#include "ops/merge_partial_attention/protocol.hpp"
#include "ops/merge_partial_attention/spec.hpp"
#include "ops/merge_partial_attention/workload.hpp"

namespace untax {
namespace {

struct cut {
  int workers;
  int senders;
};

/// A pattern, with all heads for all ranks or some for each.
struct merge_checks {
  using merge_case = grid_case<merge_partial_attention_problem, merge_partial_attention_plan>;

  pattern how;
  merged_heads get;

  [[nodiscard]] std::string name() const {
    return fmt::format("{} {}{}", merge_partial_attention_name, untax::name_of(how),
                       get == merged_heads::own ? " own heads" : "");
  }
  [[nodiscard]] std::string name_of(const merge_case& c) const {
    return fmt::format(
        "merge_partial_attention {}: {} ranks, {} tokens, {} {} heads of {}, {} workers, {} "
        "senders, {} epochs",
        untax::name_of(how), c.plan.world, c.problem.tokens, c.problem.heads,
        get == merged_heads::all ? "whole" : "shared", c.problem.head_dim, c.plan.workers,
        c.plan.senders, c.epochs);
  }

  [[nodiscard]] merge_case make(int ranks, const extent& tokens_and_heads, std::int64_t head_dim,
                                const cut& division) const {
    merge_case c;
    c.problem.tokens = tokens_and_heads.rows;
    c.problem.heads = tokens_and_heads.cols;
    c.problem.head_dim = head_dim;
    c.problem.get = get;
    c.plan = {ranks, 0, how, division.workers, division.senders};
    return c;
  }
  [[nodiscard]] std::vector<merge_case> schedules(int ranks, bool quick) const {
    std::vector<extent> sizes = {{1, 1}, {3, 4}};
    std::vector<cut> cuts = {{1, 1}, {2, 3}};
    if (!quick) {
      sizes.insert(sizes.end(), {{2, 8}, {5, 7}});
      cuts.push_back({3, 2});
    }
    return crossed(sizes, cuts, [&](const extent& size, const cut& division) {
      return make(ranks, size, 2, division);
    });
  }
  [[nodiscard]] std::vector<merge_case> explored(int ranks) const {
    return {// One head for all ranks: if ranks share the heads, only one rank gets a head.
            make(ranks, {1, 1}, 1, {1, 1}),
            // Several workers, a head for each rank, and more tokens than workers.
            make(ranks, {3, ranks}, 1, {ranks == 2 ? 2 : 1, 1})};
  }

  [[nodiscard]] static schedule::rank_plan steps(const merge_case& c,
                                                 const merge_partial_attention_plan& plan) {
    const std::int64_t width = c.problem.head_dim + attention_statistics;
    const range own = merge_partial_attention::heads_of(c.problem, plan.world, plan.rank);
    return {program(merge_partial_attention_protocol(c.problem, plan)),
            {{c.problem.tokens * c.problem.heads, width}, {}, {c.problem.tokens * own.size, width}},
            c.epochs};
  }
  [[nodiscard]] static model::scenario values(const merge_case& c) {
    const auto part_of = [](int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
      return model::sample(epoch * 16 + static_cast<std::uint64_t>(rank), row, col);
    };
    model::scenario s;
    s.a = part_of;
    s.expected = [=](int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
      const range heads = merge_partial_attention::heads_of(c.problem, c.plan.world, rank);
      const std::int64_t at = row / heads.size * c.problem.heads + heads.begin + row % heads.size;
      std::uint64_t sum = 0;
      for (int source = 0; source < c.plan.world; ++source) sum += part_of(source, epoch, at, col);
      return sum;
    };
    return s;
  }
};

}  // namespace

std::vector<protocol_variant> spec_of<merge_partial_attention>::variants() {
  std::vector<protocol_variant> variants;
  for (const pattern how : merge_patterns) {
    for (const merged_heads get : {merged_heads::all, merged_heads::own})
      variants.push_back(checked(merge_checks{how, get}));
  }
  return variants;
}

}  // namespace untax
