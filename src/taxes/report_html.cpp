#include <untax/taxes/report.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <untax/taxes/verdict.hpp>

#include "report_page.hpp"
#include "time_text.hpp"
#include "waterfall.hpp"

namespace untax {
namespace {

// A list instead of a picture, so that a screen reader can read the bars. The uncertainties of a
// prediction are not shown: they are the spread of a few simulations, which is unrelated to its
// error.
std::string waterfall(const tax_report& report, const tax_row* row, const time_unit& unit,
                      std::string_view tax_part::*title_of) {
  const bool spread = report.predicted.empty();
  const std::vector<waterfall_bar> bars = waterfall_bars(report, row, title_of);
  std::string out = "<ol class=\"waterfall\">\n";
  for (const waterfall_bar& bar : bars) {
    const auto link = [](double share, int from, int to) {
      return fmt::format(
          "<line class=\"link\" x1=\"{0:.3f}%\" x2=\"{0:.3f}%\" y1=\"{1}%\" y2=\"{2}%\"/>",
          100 * share, from, to);
    };
    if (!bar.separable) {
      out += fmt::format(
          "<li><span class=\"label\"><span class=\"swatch {}\"></span>{}</span><span></span>"
          "<span class=\"value chance\">{}</span><span class=\"share\"></span></li>\n",
          bar.key, capitalised(bar.title), not_separable);
      continue;
    }
    std::string links;
    if (&bar != &bars.front()) links += link(bar.from, 0, 50);
    if (&bar != &bars.back()) links += link(bar.to, 50, 100);
    out += fmt::format(
        "<li><span class=\"label\"><span class=\"swatch {0}\"></span>{1}</span>"
        "<svg class=\"bar\" aria-hidden=\"true\">{2}<rect class=\"{0}{3}\" x=\"{4:.3f}%\" "
        "width=\"{5:.3f}%\" y=\"18%\" "
        "height=\"64%\" rx=\"2\"/></svg>"
        "<span class=\"value\">{6}{7}</span><span class=\"share\">{8}</span></li>\n",
        bar.key, capitalised(bar.title), links, bar.seconds < 0 ? " less" : "", 100 * bar.low(),
        100 * bar.width(), figure_with_unit(bar.seconds, unit),
        spread && bar.uncertain > 0 && std::isfinite(bar.uncertain)
            ? fmt::format(" <span class=\"chance\">\u00b1{}</span>", figure(bar.uncertain, unit))
            : "",
        percent(bar.seconds / bars.front().seconds));
  }
  return out + "</ol>\n";
}

std::string tiles(const tax_report& report, const time_unit& unit) {
  const tax_breakdown layer = layer_total(report);
  const tax_breakdown chance = layer_uncertainty(report);
  const tax_verdict verdict = verdict_of(report);
  const double today = layer.total();
  const double fused = layer.bound + layer.remainder;
  double taxes = 0;
  double doubt = 0;
  for (const tax_part& part : tax_parts) {
    taxes += part.is_tax ? layer.*part.value : 0.0;
    doubt += part.is_tax ? chance.*part.value : 0.0;
  }
  const auto tile = [](const char* title, const std::string& value, const std::string& more) {
    return fmt::format("<div><dt>{}</dt><dd>{}<span class=\"more\">{}</span></dd></div>\n", title,
                       value, more);
  };
  return "<dl class=\"tiles\">\n" +
         tile("In a graph (E1)", figure_with_unit(today - layer.launch, unit),
              "launched one by one (E0): " + figure_with_unit(today, unit)) +
         tile("Best fused (E4)", figure_with_unit(fused, unit), gain_text(verdict)) +
         tile("The three taxes", figure_with_unit(taxes, unit),
              is_doubtful(taxes, doubt)      ? "smaller than their uncertainty"
              : verdict.fusing == gain::none ? "E1 and E4 cannot be told apart"
                                             : percent(taxes / today) + " of E0") +
         tile("Bound", figure_with_unit(layer.bound, unit),
              verdict.over_bound > 0 ? fmt::format("E4 is {} times this", over_bound_text(verdict))
                                     : std::string(name_of(verdict.bound))) +
         "</dl>\n";
}

std::string warnings_of(const tax_report& report) {
  std::string out;
  if (!report.predicted.empty())
    out += fmt::format("<p class=\"warning\">Times are {}</p>\n", escaped(report.predicted));
  for (const std::string& warning : report.warnings)
    out += fmt::format("<p class=\"warning\">Warning: {}</p>\n", escaped(warning));
  return out;
}

std::string steps_table(const tax_row& row, const time_unit& unit) {
  double low = row.bound() > 0 ? row.bound() : row.steps.front().time.p10;
  double high = 0;
  for (const tax_step& step : row.steps) {
    low = std::min({low, step.time.p10, step.time.median});
    high = std::max({high, step.time.p90, step.time.median});
  }
  // Room for the dot at both ends.
  const auto place = [&](double seconds) {
    return 2 + 96 * (high > low ? (seconds - low) / (high - low) : 0.5);
  };
  std::string out = fmt::format(
      "<details><summary>Steps</summary><div class=\"scroll\"><table class=\"steps\">\n"
      "<thead><tr><th scope=\"col\">step</th><th scope=\"col\" class=\"words\">what ran</th>"
      "<th scope=\"col\">median, {}</th><th scope=\"col\">p10 to p90</th></tr></thead>\n<tbody>\n",
      unit.symbol);
  for (const tax_step& step : row.steps) {
    out += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"words\">{}<svg class=\"range\" "
        "aria-hidden=\"true\">"
        "<line x1=\"{:.2f}%\" x2=\"{:.2f}%\" y1=\"50%\" y2=\"50%\"/><circle cx=\"{:.2f}%\" "
        "cy=\"50%\" r=\"3\"/></svg>"
        "</td><td>{}</td><td>{} to {}</td></tr>\n",
        escaped(step.id), escaped(step.ran), place(step.time.p10), place(step.time.p90),
        place(step.time.median), figure(step.time.median, unit), figure(step.time.p10, unit),
        figure(step.time.p90, unit));
  }
  out += fmt::format(
      "</tbody></table></div><p class=\"hint\">Lines go from p10 to p90, dots are medians, on a "
      "scale from {} to {}. Bound: "
      "compute alone {} ({} to {}), link alone {} ({} to {}).</p></details>\n",
      figure_with_unit(low, unit), figure_with_unit(high, unit),
      figure_with_unit(row.compute.median, unit), figure(row.compute.p10, unit),
      figure(row.compute.p90, unit), figure_with_unit(row.link.median, unit),
      figure(row.link.p10, unit), figure(row.link.p90, unit));
  return out;
}

std::string stand_ins_of(const tax_report& report, const tax_row& row, const time_unit& unit) {
  std::string out;
  for (const stand_in_cost& cost : row.stand_ins(report)) {
    out += fmt::format(
        "<p class=\"hint\">Cost of the stand-in: {} ({}) took {} \u00b1{} more than {}. {}</p>\n",
        cost.id, escaped(row.step(cost.id)->ran), figure_with_unit(cost.seconds, unit),
        figure(cost.uncertainty, unit), cost.before,
        cost.counted ? "E4 may still have it, so it counts against the taxes."
                     : "It is no part of E0; the parts on both sides are one figure.");
  }
  return out;
}

std::string card(const tax_report& report, const tax_row& row) {
  const time_unit unit = unit_for(row.step("E0")->time.median);
  const std::string why = row.why_not_separable(report);
  return fmt::format(
             "<article class=\"card\"><header><h3>{}</h3><span class=\"hint\">{} \u00d7 in the "
             "model</span></header>\n"
             "<p class=\"hint\"><code>{}</code> m {}, n {}, k {}, {}</p>\n",
             escaped(row.op.name), row.op.occurrences(), escaped(row.op.operator_name), row.op.m,
             row.op.n, row.op.k, name_of(row.op.type)) +
         waterfall(report, &row, unit, &tax_part::column) +
         (why.empty() ? "" : fmt::format("<p class=\"hint\">{}.</p>\n", escaped(why))) +
         stand_ins_of(report, row, unit) + steps_table(row, unit) + "</article>\n";
}

std::string figures_table(const tax_report& report) {
  double largest = 0;
  for (const tax_row& row : report.rows) largest = std::max(largest, row.step("E0")->time.median);
  const time_unit unit = unit_for(largest);
  std::string out = fmt::format(
      "<div class=\"scroll panel\"><table>\n<caption>Times in {}. Grey: smaller than its "
      "uncertainty.</caption>\n"
      "<thead><tr><th scope=\"col\">operation</th><th scope=\"col\">times</th><th "
      "scope=\"col\">E0</th>",
      unit.symbol);
  for (const tax_part& part : shown_parts(report))
    out += fmt::format("<th scope=\"col\">{}</th>", part.column);
  out += "<th scope=\"col\">E4 / bound</th></tr></thead>\n<tbody>\n";
  const auto line = [&](const std::string& name, std::int64_t times, const tax_breakdown& parts,
                        const tax_breakdown& chance, const tax_verdict& verdict, const char* kind,
                        const tax_row* row) {
    out += fmt::format("<tr{}><th scope=\"row\">{}</th><td>{}</td><td>{}</td>", kind, escaped(name),
                       times, figure(parts.total(), unit));
    for (const tax_part& part : shown_parts(report)) {
      if (row != nullptr ? !row->separates(part, report) : !separates(part, report)) {
        out += fmt::format("<td class=\"doubtful\">{}</td>", is_sum(part) ? "" : not_separable);
        continue;
      }
      const bool doubtful = is_doubtful(parts.*part.value, chance.*part.value);
      out += fmt::format("<td{}>{}</td>", doubtful ? " class=\"doubtful\"" : "",
                         figure(parts.*part.value, unit));
    }
    out += fmt::format("<td>{}</td></tr>\n", over_bound_text(verdict));
  };
  for (const tax_row& row : report.rows) {
    line(row.op.name, row.op.occurrences(), row.breakdown(report), row.uncertainty(report),
         verdict_of(row, report), "", &row);
  }
  if (report.one_operator) return out + "</tbody></table></div>\n";
  const tax_breakdown chance = layer_uncertainty(report);
  tax_breakdown model_chance;
  model_chance.add(chance, report.layers);
  line("average layer" + coverage(report), report.layers, layer_total(report), chance,
       verdict_of(report), " class=\"sum\"", nullptr);
  line(title_of_model(report), 1, model_total(report), model_chance, verdict_of(report),
       " class=\"sum\"", nullptr);
  return out + "</tbody></table></div>\n";
}

/// Each tax by ablation and by the trace, and sentences about those that differ.
std::string compared_table(const tax_report& report, const time_unit& unit) {
  const auto taxes = traced_taxes(report);
  if (taxes.empty()) return "";
  std::string out = fmt::format(
      "<div class=\"scroll panel\"><table>\n<caption>Taxes in {}</caption>\n<thead><tr><th "
      "scope=\"col\">operation</th><th scope=\"col\" class=\"words\">tax</th><th "
      "scope=\"col\">by ablation</th><th scope=\"col\">by the trace</th><th scope=\"col\">same "
      "sign</th></tr></thead>\n<tbody>\n",
      unit.symbol);
  std::string differences;
  for (const traced_tax& tax : taxes) {
    out += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td><td>{}{}</td><td>{}</td><td>{}"
        "</td></tr>\n",
        escaped(tax.operation), tax.tax, figure(tax.by_ablation, unit),
        std::isfinite(tax.uncertainty) ? " \u00b1" + figure(tax.uncertainty, unit) : "",
        figure(tax.by_trace, unit),
        !tax.agrees   ? "not told"
        : *tax.agrees ? "yes"
                      : "no");
    if (!tax.difference.empty())
      differences += fmt::format("<li>{}</li>\n", escaped(tax.difference));
  }
  out += "</tbody></table></div>\n";
  if (!differences.empty()) out += "<ul class=\"notes\">\n" + differences + "</ul>\n";
  return out;
}

std::string traced_section(const tax_report& report) {
  double longest = 0;
  for (const tax_row& row : report.rows) {
    for (const traced_step& step : row.traced) longest = std::max(longest, step.path.total());
  }
  if (longest == 0) {
    return fmt::format("<section><h2>By the trace</h2>\n<p class=\"hint\">{}</p></section>\n",
                       escaped(agreement_text(report)));
  }
  const time_unit unit = unit_for(longest);
  std::string out = fmt::format(
      "<section><h2>By the trace</h2>\n<div class=\"scroll panel\"><table>\n<caption>Times in {}, "
      "along the critical path of each step, and at each rank; each line adds up to its "
      "time.</caption>\n<thead><tr><th scope=\"col\">operation</th><th scope=\"col\" "
      "class=\"words\">of</th><th scope=\"col\">time</th>",
      unit.symbol);
  for (std::size_t i = 0; i < trace_parts; ++i)
    out += fmt::format("<th scope=\"col\">{}</th>", name_of(static_cast<trace_part>(i)));
  out += "</tr></thead>\n<tbody>\n";
  const auto line = [&](const std::string& name, const std::string& whole,
                        const trace_breakdown& parts) {
    out += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td><td>{}</td>",
                       escaped(name), whole, figure(parts.total(), unit));
    for (const double seconds : parts.seconds)
      out += fmt::format("<td>{}</td>", figure(seconds, unit));
    out += "</tr>\n";
  };
  for (const tax_row& row : report.rows) {
    for (const traced_step& step : row.traced) {
      line(row.op.name, step.id, step.path);
      for (std::size_t r = 0; r < step.ranks.size(); ++r)
        line(row.op.name, fmt::format("{}, rank {}", step.id, r), step.ranks[r]);
    }
  }
  out += "</tbody></table></div>\n";
  out += fmt::format("<p class=\"hint\">{}</p>\n", escaped(agreement_text(report)));
  return out + compared_table(report, unit) + "</section>\n";
}

std::string unmeasured_list(const tax_report& report) {
  if (report.unmeasured.empty()) return "";
  std::string out =
      "<section><h2>Not measured</h2>\n<p>All sums leave these out.</p>\n<ul class=\"notes\">\n";
  for (const auto& [op, reason] : report.unmeasured) {
    out += fmt::format("<li><b>{}</b> ({} m {}, n {}, k {}), {} \u00d7 in the model: {}</li>\n",
                       escaped(op.name), escaped(op.operator_name), op.m, op.n, op.k,
                       op.occurrences(), escaped(reason));
  }
  return out + "</ul></section>\n";
}

std::string reading_guide(const tax_report& report) {
  std::string out =
      "<section><h2>How to read this</h2>\n<p>Each operation is run in five forms on the same "
      "data. Every form leaves out "
      "one cost of the form before it, so the difference of two neighbours is that cost, and the "
      "parts add "
      "up to E0 exactly. Where a form took longer than the one before it, the cost of the stand-in "
      "is "
      "a part of its own, which is negative and drawn hollow.</p>\n"
      "<dl class=\"facts\">\n";
  for (const tax_part& part : shown_parts(report)) {
    out += fmt::format("<dt><span class=\"swatch {}\"></span>{}</dt><dd>{}</dd>\n", part.key,
                       capitalised(part.title), part.meaning);
  }
  return out + fmt::format("</dl>\n<p>{}</p></section>\n", escaped(bound_text(verdict_of(report))));
}

std::string measuring_facts(const tax_report& report) {
  std::string out = fmt::format("<section><h2>How it was {}</h2>\n<dl class=\"facts\">\n",
                                report.predicted.empty() ? "measured" : "predicted");
  const auto fact = [&](const char* name, const std::string& value) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
  };
  if (!report.predicted.empty()) {
    fact("Times", report.predicted);
    fact("Runs", fmt::format("{} simulations of each step, each with ranks that begin at other "
                             "moments; figures are medians",
                             report.repeats));
    fact("Program", fmt::format("untax {}, commit {}", report.version, report.commit));
    fact("Date", report.date);
    return out + "</dl></section>\n";
  }
  fact("Processor", fmt::format("{}, {} cores used", report.cpu, report.cores));
  fact("Machine", report.machine);
  fact("Backend", report.backend);
  if (!report.gpus.empty()) {
    fact("GPUs", report.gpus);
    fact("Driver", report.driver);
    fact("Libraries", report.libraries);
  }
  fact("Runs", fmt::format("{} timed runs of each step, the steps in turn; a run's time is that of "
                           "its slowest rank; "
                           "figures are medians, \u00b1 is their uncertainty (95 %)",
                           report.repeats));
  fact("Program", fmt::format("untax {}, commit {}", report.version, report.commit));
  fact("Date", report.date);
  return out + "</dl></section>\n";
}

}  // namespace

std::string render_html(const tax_report& report) {
  check(report);
  const tax_breakdown layer = layer_total(report);
  const time_unit unit = unit_for(layer.total());
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>The taxes of "
      "{}</title>\n<style>{}</style>\n</head>\n"
      "<body>\n<header>\n<p class=\"eyebrow\">untax: what bulk-synchronous execution "
      "costs</p>\n<h1>{}</h1>\n"
      "<ul class=\"chips\"><li>tensor parallel {}</li><li>{} tokens</li><li>{}</li><li>{} "
      "layers</li>"
      "<li>{} backend</li></ul>\n<p class=\"finding\">{}</p>\n",
      escaped(report.model), report_style, escaped(report.model), report.tensor_parallel,
      report.tokens, name_of(report.type), report.layers, escaped(report.backend),
      escaped(finding(report)));
  out += warnings_of(report) + tiles(report, unit) + "</header>\n<main>\n";
  out += fmt::format(
      "<section><h2>{}{}</h2>\n<p class=\"hint\">From what runs today down to the "
      "bound. {}</p>\n",
      report.one_operator ? escaped(report.model) : "An average layer", escaped(coverage(report)),
      escaped(bound_text(verdict_of(report))));
  out += "<div class=\"panel\">\n" + waterfall(report, nullptr, unit, &tax_part::title) +
         "</div></section>\n";
  out +=
      "<section><h2>Each operation</h2>\n<p class=\"hint\">One execution, each on its own "
      "scale.</p>\n<div class=\"cards\">\n";
  for (const tax_row& row : report.rows) out += card(report, row);
  out +=
      "</div></section>\n<section><h2>All figures</h2>\n" + figures_table(report) + "</section>\n";
  out += traced_section(report) + timeline_section(report);
  out += reading_guide(report) + measuring_facts(report);
  out += unmeasured_list(report);
  if (!report.notes.empty()) {
    out += "<section><h2>Left out or assumed</h2>\n<ul class=\"notes\">\n";
    for (const std::string& note : report.notes) out += fmt::format("<li>{}</li>\n", escaped(note));
    out += "</ul></section>\n";
  }
  return out +
         "</main>\n<footer>Made by <code>untax taxes</code>. This page needs no "
         "network.</footer>\n</body>\n</html>\n";
}

}  // namespace untax
