#include <untax/taxes/report.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <untax/taxes/text_table.hpp>
#include <untax/taxes/verdict.hpp>

#include "time_text.hpp"

namespace untax {
namespace {

using align = text_table::align;

std::string bold(const std::string& text, text_style style) {
  return style.colour ? "\033[1m" + text + "\033[0m" : text;
}

/// "medians of 20 runs", or "one run".
std::string counted(int times, const char* what) {
  return times == 1 ? fmt::format("one {}", what) : fmt::format("medians of {} {}s", times, what);
}

std::string head(const tax_report& report, int width, text_style style) {
  const char* dot = style.utf8 ? " \u00b7 " : ", ";
  std::string text =
      bold(wrapped(fmt::format("The taxes of {}{}tensor parallel {}{}{} tokens{}{}{}{} backend",
                               report.model, dot, report.tensor_parallel, dot, report.tokens, dot,
                               name_of(report.type), dot, report.backend),
                   width),
           style);
  if (!report.predicted.empty()) {
    return text + bold(wrapped("Times are " + report.predicted, width), style) +
           wrapped(fmt::format("untax {} ({}), {}; {}", report.version, report.commit, report.date,
                               counted(report.repeats, "simulation")),
                   width);
  }
  const std::string place =
      report.gpus.empty()
          ? fmt::format("{}, {} cores, {}", report.cpu, report.cores, report.machine)
          : fmt::format("{}, driver {}, {}", report.gpus, report.driver, report.libraries);
  text += wrapped(fmt::format("{}; untax {} ({}), {}; {}", place, report.version, report.commit,
                              report.date, counted(report.repeats, "run")),
                  width);
  return text;
}

std::string item_text(const std::string& item, int width) {
  std::string paragraph = wrapped(item, width, "  ");
  paragraph[0] = '-';
  return paragraph;
}

text_table time_table(const tax_report& report, const time_unit& unit) {
  std::vector<text_table::column> columns = {
      {"operation", align::left}, {"times", align::right}, {"E0", align::right}};
  for (const tax_part& part : shown_parts(report))
    columns.push_back({std::string(part.column), align::right});
  columns.push_back({"E4/bound", align::right});
  text_table table(columns);
  const auto line = [&](const std::string& name, std::int64_t times, const tax_breakdown& parts,
                        const tax_breakdown& chance, const tax_verdict& verdict,
                        const tax_row* row) {
    std::vector<std::string> cells = {name, std::to_string(times), in_unit(parts.total(), unit)};
    for (const tax_part& part : shown_parts(report)) {
      const double value = parts.*part.value;
      if (row != nullptr ? !row->separates(part, report) : !separates(part, report)) {
        cells.emplace_back(is_sum(part) ? "" : not_separable);
        continue;
      }
      cells.push_back((is_doubtful(value, chance.*part.value) ? "~" : "") + in_unit(value, unit));
    }
    cells.push_back(over_bound_text(verdict));
    table.add(std::move(cells));
  };
  for (const tax_row& row : report.rows) {
    line(row.op.name, row.op.occurrences(), row.breakdown(report), row.uncertainty(report),
         verdict_of(row, report), &row);
  }
  if (report.one_operator) return table;
  table.rule();
  const tax_breakdown layer_chance = layer_uncertainty(report);
  tax_breakdown model_chance;
  model_chance.add(layer_chance, report.layers);
  line("average layer" + coverage(report), report.layers, layer_total(report), layer_chance,
       verdict_of(report), nullptr);
  line(title_of_model(report), 1, model_total(report), model_chance, verdict_of(report), nullptr);
  return table;
}

// A line for E0 and one for each of its parts. Each bar begins where the bar above it ends.
std::string waterfall(const tax_report& report, int width, text_style style) {
  const tax_breakdown layer = layer_total(report);
  const tax_breakdown chance = layer_uncertainty(report);
  const time_unit unit = unit_for(layer.total());
  constexpr int label = 22;
  constexpr int figures = 20;
  const int room = std::max(10, width - label - figures);
  double longest = layer.total();
  double level = layer.total();
  for (const tax_part& part : shown_parts(report)) {
    level -= layer.*part.value;
    longest = std::max(longest, level + std::max(0.0, layer.*part.value));
    longest = std::max(longest, level);
  }
  const auto place = [&](double seconds) {
    return std::clamp(static_cast<int>(std::lround(seconds / longest * room)), 0, room);
  };
  std::string text;
  const auto line = [&](std::string_view title, double from, double to, double value, double doubt,
                        bool separable = true) {
    if (!separable) {
      text += fmt::format("{:<{}}{:>{}}\n", title, label, not_separable, room + figures);
      return;
    }
    const std::string mark = is_doubtful(value, doubt) ? "~" : "";
    const auto [low, high] = std::minmax({place(from), place(to)});
    const char* cell = value < 0 ? (style.utf8 ? "\u2591" : "-") : (style.utf8 ? "\u2588" : "#");
    // A part too small for a cell still gets a mark at its place.
    const bool tick = low == high;
    const int start = tick ? std::min(low, room - 1) : low;
    const int cells = tick ? 1 : high - low;
    std::string bar(static_cast<std::size_t>(start), ' ');
    for (int i = 0; i < cells; ++i) bar += tick ? (style.utf8 ? "\u258f" : "|") : cell;
    bar.append(static_cast<std::size_t>(room - start - cells), ' ');
    text += fmt::format("{:<{}}{}{:>{}}{:>7} %\n", title, label, bar, mark + with_unit(value, unit),
                        figures - 9, mark + in_percent(value / layer.total()));
  };
  line(report.one_operator ? "E0" : "E0, an average layer", 0, layer.total(), layer.total(), 0);
  level = layer.total();
  for (const tax_part& part : shown_parts(report)) {
    const double value = layer.*part.value;
    line(part.title, level - value, level, value, chance.*part.value, separates(part, report));
    level -= value;
  }
  return text;
}

/// The costs of stand-ins of all operations; empty if there are none.
std::string stand_in_table(const tax_report& report, const time_unit& unit, int width,
                           text_style style) {
  text_table table({{"operation"},
                    {"step"},
                    {"cost", align::right},
                    {"+-", align::right},
                    {"more than"},
                    {"counts"},
                    {"which ran"}});
  bool any = false;
  for (const tax_row& row : report.rows) {
    for (const stand_in_cost& cost : row.stand_ins(report)) {
      table.add({row.op.name, cost.id, in_unit(cost.seconds, unit), in_unit(cost.uncertainty, unit),
                 cost.before, cost.counted ? "yes" : "no", row.step(cost.id)->ran});
      any = true;
    }
  }
  if (!any) return "";
  return "\n" +
         bold(wrapped(fmt::format("The cost of the stand-in, in {}: what a step took more than the "
                                  "one before it",
                                  unit.name),
                      width),
              style) +
         table.render(width, style.utf8) +
         wrapped(
             "A cost that E4 may still have counts against the taxes. Any other is no part of E0, "
             "and the parts on both sides of its step are one figure.",
             width);
}

std::string problem_table(const tax_report& report, int width, text_style style) {
  text_table table({{"operation", align::left},
                    {"operator", align::left},
                    {"m", align::right},
                    {"n", align::right},
                    {"k", align::right},
                    {"E3, no barrier", align::left},
                    {"E4, fused", align::left}});
  for (const tax_row& row : report.rows) {
    const tax_step* separate = row.step("E3");
    table.add({row.op.name, row.op.operator_name, std::to_string(row.op.m),
               std::to_string(row.op.n), std::to_string(row.op.k),
               separate != nullptr ? separate->ran : "not measured", row.step("E4")->ran});
  }
  for (const auto& [op, reason] : report.unmeasured) {
    table.add({op.name, op.operator_name, std::to_string(op.m), std::to_string(op.n),
               std::to_string(op.k), "not measured", "not measured"});
  }
  return table.render(width, style.utf8);
}

std::string traced_table(const tax_report& report, const time_unit& unit, int width,
                         text_style style) {
  std::vector<text_table::column> columns = {{"operation"}, {"of"}, {"time", align::right}};
  for (std::size_t i = 0; i < trace_parts; ++i)
    columns.push_back({std::string(name_of(static_cast<trace_part>(i))), align::right});
  text_table table(columns, 2);
  const auto line = [&](std::string name, std::string whole, const trace_breakdown& parts) {
    std::vector<std::string> cells = {std::move(name), std::move(whole),
                                      in_unit(parts.total(), unit)};
    for (const double seconds : parts.seconds) cells.push_back(in_unit(seconds, unit));
    table.add(std::move(cells));
  };
  for (const tax_row& row : report.rows) {
    for (const traced_step& step : row.traced) {
      line(&step == &row.traced.front() ? row.op.name : "", step.id, step.path);
      if (step.id != "E4") continue;
      for (std::size_t r = 0; r < step.ranks.size(); ++r)
        line("", fmt::format("rank {}", r), step.ranks[r]);
    }
  }
  return table.render(width, style.utf8);
}

/// Each tax by ablation and by the trace.
std::string compared_table(const tax_report& report, const time_unit& unit, int width,
                           text_style style) {
  text_table table({{"operation"},
                    {"tax"},
                    {"by ablation", align::right},
                    {"+-", align::right},
                    {"by the trace", align::right},
                    {"same sign"}},
                   2);
  const auto taxes = traced_taxes(report);
  for (const traced_tax& tax : taxes) {
    const char* same = !tax.agrees ? "not told" : *tax.agrees ? "yes" : "no";
    table.add({tax.operation, tax.tax, in_unit(tax.by_ablation, unit),
               std::isfinite(tax.uncertainty) ? in_unit(tax.uncertainty, unit) : "unknown",
               in_unit(tax.by_trace, unit), same});
  }
  return taxes.empty() ? "" : table.render(width, style.utf8);
}

std::string traced_text(const tax_report& report, const time_unit& unit, int width,
                        text_style style) {
  if (std::ranges::all_of(report.rows, [](const tax_row& row) { return row.traced.empty(); }))
    return "\n" + wrapped(agreement_text(report), width);
  std::string text =
      "\n" + bold(wrapped(fmt::format("By the trace, in {}: along the critical path of each step, "
                                      "and of E4 at each rank",
                                      unit.name),
                          width),
                  style);
  text += traced_table(report, unit, width, style);
  text += "\n" + wrapped(agreement_text(report), width);
  text += compared_table(report, unit, width, style);
  for (const traced_tax& tax : traced_taxes(report)) {
    if (!tax.difference.empty()) text += item_text(tax.difference, width);
  }
  return text;
}

}  // namespace

std::string render_table(const tax_report& report, int width, text_style style) {
  check(report);
  width = std::max(width, 80);
  double largest = 0;
  for (const tax_row& row : report.rows) largest = std::max(largest, row.step("E0")->time.median);
  const time_unit unit = unit_for(largest);

  std::string text = head(report, width, style) + "\n" + wrapped(finding(report), width) + "\n";
  for (const std::string& warning : report.warnings)
    text += wrapped("Warning: " + warning, width) + "\n";
  text += waterfall(report, width, style) + "\n";
  text +=
      bold(wrapped(fmt::format("Times in {}{}, one execution of each operation; E0 = the sum of "
                               "all that follow",
                               unit.name, coverage(report)),
                   width),
           style);
  text += time_table(report, unit).render(width, style.utf8) + "\n";
  text += wrapped(fmt::format("A ~ marks figures smaller than the uncertainty of its medians{}. {}",
                              report.repeats < 2 ? ", which is unknown after a single run" : "",
                              bound_text(verdict_of(report))),
                  width);
  for (const tax_row& row : report.rows) {
    const std::string why = row.why_not_separable(report);
    if (!why.empty()) text += wrapped(fmt::format("{}: {}.", row.op.name, why), width);
  }
  text += stand_in_table(report, unit, width, style);
  text += traced_text(report, unit, width, style);
  text += "\n" + problem_table(report, width, style);
  if (!report.unmeasured.empty()) text += "\n" + bold("Not measured", style) + "\n";
  for (const auto& [op, reason] : report.unmeasured)
    text += item_text(
        fmt::format("{}, {} times in the model: {}", op.name, op.occurrences(), reason), width);
  if (!report.notes.empty()) text += "\n" + bold("Notes", style) + "\n";
  for (const std::string& note : report.notes) text += item_text(note, width);
  return text;
}

}  // namespace untax
