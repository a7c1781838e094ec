#include "ops/timing/judgement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "ops/common/registry.hpp"

namespace untax {
namespace {

constexpr double near = 0.25;
constexpr double near_of_whole = 0.05;
constexpr double same = 0.03;

/// Figures without calibrated parts come first.
int pass_of(const timed_case& c) {
  if (c.by.ends_with(" alone") || c.by == "NCCL" || c.by == "local") return 0;
  return 1;
}

/// The problem of a figure, whatever pattern it was carried out by.
std::string problem_of(const figure& f) {
  timed_case c = f.what;
  c.by = f.file;
  return c.text();
}

void count_orders(judgement& made) {
  std::map<std::string, std::vector<const judged*>> problems;
  for (const judged& one : made.figures) {
    if (pass_of(one.what.what) == 1) problems[problem_of(one.what)].push_back(&one);
  }
  for (auto& [name, all] : problems) {
    if (all.size() < 2) continue;
    std::ranges::sort(all, {}, [](const judged* j) { return j->what.seconds; });
    const judged& first = *all[0];
    const judged& second = *all[1];
    ++made.orders;
    const bool close = second.what.seconds / first.what.seconds - 1 < same ||
                       std::abs(second.seconds / first.seconds - 1) < same;
    if (close || first.seconds <= second.seconds) ++made.orders_right;
  }
}

std::string group_of(const figure& f) {
  std::string name = f.what.op;
  if (f.what.gathers()) name += fmt::format(", {}", name_of(f.what.gather));
  return name + ", " + f.what.by;
}

void group(judgement& made) {
  std::map<std::string, judged_group> groups;
  for (const judged& one : made.figures) {
    judged_group& g = groups[group_of(one.what)];
    g.name = group_of(one.what);
    ++g.figures;
    g.mean += std::abs(one.error());
    if (std::abs(one.error()) <= near) ++g.within;
    if (std::abs(one.error()) > std::abs(g.worst)) g.worst = one.error();
  }
  for (auto& [name, g] : groups) {
    g.mean /= g.figures;
    g.within /= g.figures;
    made.groups.push_back(g);
  }
  std::ranges::stable_sort(made.groups, std::greater{}, &judged_group::mean);
}

/// The patterns of a step of the taxes; the step takes the best of them.
std::vector<std::string> patterns_of_term(const timed_case& c, int term) {
  if (term == 0) return {"bulk_library eager"};
  if (term == 1) return {"bulk_library graph"};
  if (term == 2) return {"bulk_synchronous"};
  if (c.is_attention()) return {term == 3 ? "producer_consumer" : "fused_sequential"};
  if (operator_named(c.op).sums_to) {
    if (term == 3) return {"producer_consumer"};
    return {"fused_sequential", "fused_specialized"};
  }
  if (term == 3) return {"producer_consumer", "copy_engine"};
  return {"fused_sequential", "fused_specialized", "fused_warp_specialized"};
}

}  // namespace

bool judged_term::good() const noexcept {
  return std::abs(error()) <= near ||
         std::abs(seconds - row.steps[term]) <= near_of_whole * row.steps[0];
}

int judgement::good_terms() const noexcept {
  return static_cast<int>(std::ranges::count_if(terms, &judged_term::good));
}

calibration fit(const timing::machine& m, const measurements& known) {
  predictor p(m, {});
  p.known().device = m.device;
  p.known().files = known.files;
  for (const int pass : {0, 1}) {
    calibration found = p.known();
    for (const figure& f : known.figures) {
      if (pass_of(f.what) == pass)
        found.add(predictor::key_of(f.what), f.seconds / p.simulate(f.what).simulated);
    }
    p.known() = found;
  }
  return p.known();
}

judgement judge(predictor& p, const measurements& known) {
  judgement made;
  for (const figure& f : known.figures) {
    made.ranks = std::max(made.ranks, f.what.ranks);
    made.figures.push_back({f, p.predict(f.what).seconds});
  }
  for (const measured_row& row : known.rows) {
    for (int term = 0; term < 5; ++term) {
      if (row.steps[term] < 0) continue;
      double least = std::numeric_limits<double>::max();
      for (const std::string& by : patterns_of_term(row.what, term)) {
        timed_case c = row.what;
        c.by = by;
        least = std::min(least, p.predict(c).seconds);
      }
      made.terms.push_back({row, term, least});
    }
  }
  for (const judged& one : made.figures) {
    made.mean_error += std::abs(one.error()) / static_cast<double>(made.figures.size());
    if (std::abs(one.error()) <= near)
      made.within_quarter += 1 / static_cast<double>(made.figures.size());
  }
  count_orders(made);
  group(made);
  std::ranges::stable_sort(made.figures, std::greater{},
                           [](const judged& j) { return std::abs(j.error()); });
  std::ranges::stable_sort(made.terms, std::greater{},
                           [](const judged_term& j) { return std::abs(j.error()); });
  return made;
}

}  // namespace untax
