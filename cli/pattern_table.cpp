#include "pattern_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/taxes/time_text.hpp"

namespace untax::cli {
namespace {

/// The unit of all times, so that they can be compared.
time_unit unit_of(const std::vector<bench::pattern_result>& results) {
  double largest = 0;
  for (const auto& result : results) largest = std::max(largest, result.time.median);
  return unit_for(largest);
}

const bench::pattern_result* baseline_of(const std::vector<bench::pattern_result>& results) {
  if (results.size() < 2) return nullptr;
  const auto match = std::find_if(results.begin(), results.end(), [](const auto& result) {
    return result.asked == pattern::bulk_library && result.refusal.empty();
  });
  return match == results.end() ? nullptr : &*match;
}

std::string rate_text(double rate) { return fmt::format("{:.{}f}", rate, rate < 1000 ? 2 : 0); }

}  // namespace

std::string pattern_table(const trial_subject& what, int ranks,
                          const std::vector<bench::pattern_result>& results, double tolerance,
                          int width, text_style how) {
  using side = table::align;
  const bool verified =
      std::ranges::any_of(results, [](const auto& result) { return result.error.has_value(); });
  const bench::pattern_result* baseline = baseline_of(results);
  const time_unit unit = unit_of(results);
  const double work = what.work(ranks);

  std::vector<table::column> columns = {{"pattern"},
                                        {how.utf8 ? unit.symbol : unit.name, side::right},
                                        {"p10", side::right},
                                        {"p90", side::right},
                                        {what.rate_unit, side::right}};
  if (baseline != nullptr) columns.push_back({"gain", side::right});
  if (verified) {
    columns.push_back({"error", side::right});
    columns.push_back({"result"});
  }
  table rows(columns);
  std::string notes;
  for (const bench::pattern_result& result : results) {
    if (!result.refusal.empty()) {
      notes += fmt::format("left out: {}\n", result.refusal);
      continue;
    }
    if (result.asked != result.chosen)
      notes += fmt::format("{} is {}\n", name_of(result.asked), name_of(result.chosen));
    const spread& time = result.time;
    std::vector<std::string> cells = {
        std::string(name_of(result.asked)), in_unit(time.median, unit), in_unit(time.p10, unit),
        in_unit(time.p90, unit), rate_text(work / time.median * 1e-9)};
    if (baseline != nullptr) {
      cells.push_back(fmt::format("{:.2f}x", baseline->time.median / time.median));
    }
    if (result.error) {
      cells.push_back(fmt::format("{:.1e}", *result.error));
      cells.emplace_back(*result.error <= tolerance ? "right" : "WRONG");
    }
    rows.add(std::move(cells));
  }
  std::string text = rows.render(width, how.utf8) + notes;
  if (baseline != nullptr) text += "gain: bulk_library's time over that of the pattern\n";
  if (verified)
    text += fmt::format(
        "right is a relative error of at most {:.1e} (Frobenius norm, and each element)\n",
        tolerance);
  return text;
}

}  // namespace untax::cli
