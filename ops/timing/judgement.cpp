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

/// The problem of a figure, in any pattern.
std::string problem_of(const figure& f) {
  timed_case c = f.what;
  c.by = f.file;
  return c.text();
}

void count_orders(judgement& result) {
  std::map<std::string, std::vector<const judged*>> problems;
  for (const judged& figure : result.figures) {
    if (pass_of(figure.what.what) == 1) problems[problem_of(figure.what)].push_back(&figure);
  }
  for (auto& [name, all] : problems) {
    if (all.size() < 2) continue;
    std::ranges::sort(all, {}, [](const judged* j) { return j->what.seconds; });
    const judged& first = *all[0];
    const judged& second = *all[1];
    ++result.orders;
    const bool close = second.what.seconds / first.what.seconds - 1 < same ||
                       std::abs(second.seconds / first.seconds - 1) < same;
    if (close || first.seconds <= second.seconds) ++result.orders_right;
  }
}

std::string group_of(const figure& f) {
  std::string name = f.what.op;
  if (f.what.gathers()) name += fmt::format(", {}", name_of(f.what.gather));
  return name + ", " + f.what.by;
}

void group(judgement& result) {
  std::map<std::string, judged_group> groups;
  for (const judged& figure : result.figures) {
    judged_group& g = groups[group_of(figure.what)];
    g.name = group_of(figure.what);
    ++g.figures;
    g.mean += std::abs(figure.error());
    if (std::abs(figure.error()) <= near) ++g.within;
    if (std::abs(figure.error()) > std::abs(g.worst)) g.worst = figure.error();
  }
  for (auto& [name, g] : groups) {
    g.mean /= g.figures;
    g.within /= g.figures;
    result.groups.push_back(g);
  }
  std::ranges::stable_sort(result.groups, std::greater{}, &judged_group::mean);
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
    calibration result = p.known();
    for (const figure& f : known.figures) {
      if (pass_of(f.what) == pass)
        result.add(predictor::key_of(f.what), f.seconds / p.simulate(f.what).simulated);
    }
    p.known() = result;
  }
  return p.known();
}

judgement judge(predictor& p, const measurements& known) {
  judgement result;
  for (const figure& f : known.figures) {
    result.ranks = std::max(result.ranks, f.what.ranks);
    result.figures.push_back({f, p.predict(f.what).seconds});
  }
  for (const measured_row& row : known.rows) {
    for (int term = 0; term < 5; ++term) {
      if (row.steps[term] < 0) continue;
      double least = std::numeric_limits<double>::max();
      for (const std::string& way : patterns_of_term(row.what, term)) {
        timed_case c = row.what;
        c.by = way;
        least = std::min(least, p.predict(c).seconds);
      }
      result.terms.push_back({row, term, least});
    }
  }
  for (const judged& entry : result.figures) {
    result.mean_error += std::abs(entry.error()) / static_cast<double>(result.figures.size());
    if (std::abs(entry.error()) <= near)
      result.within_quarter += 1 / static_cast<double>(result.figures.size());
  }
  count_orders(result);
  group(result);
  std::ranges::stable_sort(result.figures, std::greater{},
                           [](const judged& j) { return std::abs(j.error()); });
  std::ranges::stable_sort(result.terms, std::greater{},
                           [](const judged_term& j) { return std::abs(j.error()); });
  return result;
}

}  // namespace untax
