#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <untax/taxes/report.hpp>
#include <untax/taxes/text_table.hpp>

#include "time_text.hpp"

namespace untax {
namespace {

using align = text_table::align;

/// The machine, commit and date of a report, as text.
std::string place_of(const tax_report& report) {
  const std::string where = !report.predicted.empty() ? "predicted"
                            : report.gpus.empty()     ? report.cpu
                                                      : report.gpus;
  return fmt::format("{}, commit {}, {}", where, report.commit, report.date);
}

std::string subject_of(const tax_report& report) {
  return fmt::format("{}, {} rank{}, {} tokens, {}", report.model, report.tensor_parallel,
                     report.tensor_parallel == 1 ? "" : "s", report.tokens, name_of(report.type));
}

std::string ratio(double first, double second) {
  return second > 0 && first > 0 ? fmt::format("{:.2f}", first / second) : "";
}

}  // namespace

std::string render_comparison(const tax_report& first, const tax_report& second, int width,
                              text_style style) {
  check(first);
  check(second);
  const tax_breakdown mine = layer_total(first);
  const tax_breakdown other = layer_total(second);
  const time_unit unit = unit_for(std::max(mine.total(), other.total()));
  text_table table({{"of a layer, or operator"},
                    {fmt::format("this, {}", unit.name), align::right},
                    {fmt::format("other, {}", unit.name), align::right},
                    {"this / other", align::right}});
  const auto line = [&](std::string name, double a, double b) {
    table.add({std::move(name), in_unit(a, unit), in_unit(b, unit), ratio(a, b)});
  };
  line("E0, launched one by one", mine.total(), other.total());
  line("E1, in a graph", mine.total() - mine.launch, other.total() - other.launch);
  for (const tax_part& part : tax_parts) {
    const bool of_first = separates(part, first);
    const bool of_second = separates(part, second);
    if (is_sum(part) && !of_first && !of_second) continue;
    if (of_first && of_second) {
      line(std::string(part.title), mine.*part.value, other.*part.value);
      continue;
    }
    const auto cell = [&](bool separate, double value) {
      return separate || is_sum(part) ? in_unit(value, unit) : std::string(not_separable);
    };
    table.add({std::string(part.title), cell(of_first, mine.*part.value),
               cell(of_second, other.*part.value), ""});
  }
  line("E4, best fused", mine.bound + mine.remainder, other.bound + other.remainder);
  table.rule();
  bool differs = false;
  for (const tax_row& row : first.rows) {
    const auto same = std::ranges::find_if(
        second.rows, [&](const tax_row& r) { return r.op.name == row.op.name; });
    if (same == second.rows.end()) {
      table.add({row.op.name + ": the other has none"});
      continue;
    }
    const bool other_problem = !row.op.same_problem(same->op);
    differs = differs || other_problem;
    for (const char* id : {"E0", "E4"}) {
      line(fmt::format("{}{}, {}", row.op.name, other_problem ? "*" : "", id),
           row.step(id)->time.median, same->step(id)->time.median);
    }
  }
  std::string text = wrapped("this:  " + subject_of(first) + "; " + place_of(first), width);
  text += wrapped("other: " + subject_of(second) + "; " + place_of(second), width);
  text += table.render(width, style.utf8);
  if (differs) text += wrapped("A * marks operations whose shape or type differs.", width);
  return text;
}

}  // namespace untax
