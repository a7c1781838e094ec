#include "ops/all_reduce_norm/device_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ops/all_reduce_norm/planning.hpp"

namespace untax {

std::string norm_plan::text() const {
  return fmt::format("{}; {} blocks, a row at a time{}",
                     how.passes_on ? "owners add rows, normalise them and pass them on"
                                   : "everybody adds everything",
                     blocks, how.spread > 1 ? fmt::format(" for {} of them", how.spread) : "");
}

std::vector<std::string> norm_plan::agreed() const {
  return {fmt::format("ranks {}, tokens {}, hidden {}, passes on {}", how.ranks, how.tokens,
                      how.hidden, how.passes_on)};
}

norm_plan norm_plan_of(const all_reduce_norm_problem& problem, int world, int rank, int phases,
                       int multiprocessors) {
  norm_plan plan;
  plan.how.own_rank = rank;
  plan.how.ranks = world;
  plan.how.tokens = static_cast<int>(problem.tokens);
  plan.how.hidden = static_cast<int>(problem.hidden);
  plan.how.passes_on = phases == 2 && world > 1;
  plan.how.slab_rows = plan.how.full_rows();
  // Few rows leave multiprocessors idle: then a cluster of blocks shares each row. Clusters take at
  // most half of all multiprocessors, so that they find places beside blocks of other ranks or of
  // the next kernel.
  const auto idle = [&](int spread) { return 2 * problem.tokens * spread <= multiprocessors; };
  while (!plan.how.passes_on && plan.how.spread < plan.how.parts() && idle(2 * plan.how.spread))
    plan.how.spread *= 2;
  plan.blocks =
      static_cast<int>(std::min<std::int64_t>(problem.tokens * plan.how.spread, multiprocessors));
  return plan;
}

}  // namespace untax
