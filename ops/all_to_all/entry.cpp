#include <untax/ops/collectives.hpp>

#include "ops/all_to_all/protocol.hpp"
#include "ops/collectives_common/entry.hpp"
#include "ops/collectives_common/registry.hpp"

namespace untax {
namespace {

/// Unequal parts are 0, 1/2, 1 and 3/2 times `count`.
all_to_all_problem problem_of(const collective_problem& p, int world) {
  all_to_all_problem problem{p.count, p.type};
  if (!p.uneven) return problem;
  for (int from = 0; from < world; ++from) {
    for (int to = 0; to < world; ++to)
      problem.counts.push_back((5 * from + 3 * to + 1) % 4 * p.count / 2);
  }
  return problem;
}

}  // namespace

collective_entry all_to_all_entry() {
  collective_entry entry = entry_of<all_to_all>("all_to_all", problem_of);
  entry.summary = "every rank ends with the parts that the others have for it";
  entry.has_uneven = true;
  entry.origin_of = [](const collective_problem& p, int world, int rank, std::int64_t i) {
    const all_to_all_problem problem = problem_of(p, world);
    origin at{0, i};
    for (;; ++at.from) {
      const std::int64_t part = all_to_all::part(problem, world, at.from, rank);
      if (at.index < part) break;
      at.index -= part;
    }
    for (int before = 0; before < rank; ++before)
      at.index += all_to_all::part(problem, world, at.from, before);
    return at;
  };
  entry.bytes = [](const collective_problem& p, int world) {
    const all_to_all_problem problem = problem_of(p, world);
    std::int64_t most = 0;
    for (int rank = 0; rank < world; ++rank) {
      const std::int64_t own = all_to_all::part(problem, world, rank, rank);
      most = std::max({most, all_to_all::in_count(problem, world, rank) - own,
                       all_to_all::out_count(problem, world, rank) - own});
    }
    return static_cast<double>(most) * static_cast<double>(size_of(p.type));
  };
  return entry;
}

}  // namespace untax
