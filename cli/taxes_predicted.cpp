#include "taxes_predicted.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/taxes/text_table.hpp>

#include "cell_text.hpp"
#include "machine_report.hpp"
#include "src/taxes/backends.hpp"

namespace untax::cli {
namespace {

bool separates(const scale_point& point, const tax_part& part) {
  return std::ranges::find(point.separate, part.value, &tax_part::value) != point.separate.end();
}

}  // namespace

prediction_source load_source(const std::string& file) {
  prediction_source source;
  source.machine = timing::load_machine(file);
  if (!is_uncalibrated(source.machine, file)) source.known = calibration_of(source.machine, file);
  source.text = prediction_text(source.machine, source.known, file);
  return source;
}

std::vector<int> counts_of(const std::string& text) {
  std::vector<int> counts;
  const char* at = text.data();
  const char* end = text.data() + text.size();
  while (at != end) {
    int count = 0;
    const auto [next, wrong] = std::from_chars(at, end, count);
    const bool last = next == end;
    if (wrong != std::errc() || count < 2 || count > most_predicted_ranks ||
        !(last || *next == ',') || (!last && next + 1 == end)) {
      counts.clear();
      break;
    }
    counts.push_back(count);
    at = last ? end : next + 1;
  }
  if (counts.empty()) {
    throw error(
        errc::invalid_argument,
        fmt::format("--scale is \"{}\"; it has to be numbers of ranks from 2 to {}, such as "
                    "2,4,8",
                    text, most_predicted_ranks));
  }
  return counts;
}

std::vector<scale_point> scale_of(const CLI::App& verb, taxes_request what,
                                  const prediction_source& source, const std::vector<int>& counts,
                                  int repeats) {
  std::vector<scale_point> points;
  for (const int ranks : counts) {
    scale_point& point = points.emplace_back();
    point.ranks = ranks;
    what.ranks = ranks;
    try {
      tax_report report;
      report.tensor_parallel = ranks;
      report.repeats = repeats;
      const taxes_plan plan = plan_of(verb, what, report);
      const auto backend =
          make_predicted_backend(source.machine, source.known, ranks, repeats, nullptr);
      measure_into(report, *backend, plan.operations, [](const layer_operation&) {});
      if (report.rows.empty()) {
        point.refused = report.unmeasured.empty() ? "there is nothing to measure"
                                                  : report.unmeasured.front().reason;
        continue;
      }
      point.parts = layer_total(report);
      std::ranges::copy_if(tax_parts, std::back_inserter(point.separate),
                           [&](const tax_part& p) { return separates(p, report); });
      point.whole = point.parts.total();
      point.fused = point.parts.bound + point.parts.remainder;
      if (!report.unmeasured.empty()) point.refused = coverage(report).substr(2);
    } catch (const error& wrong) {
      point.refused = wrong.what();
    }
  }
  const bool any = std::ranges::any_of(points, [](const scale_point& p) { return p.whole > 0; });
  if (!any) throw error(errc::invalid_argument, points.front().refused);
  return points;
}

std::string text_of(const std::vector<scale_point>& points, int width, bool utf8) {
  constexpr auto right = text_table::align::right;
  std::vector<text_table::column> columns = {{"ranks", right}, {"E0", right}, {"E4", right}};
  std::vector<tax_part> parts(tax_parts.begin(), tax_parts.end());
  std::erase_if(parts, [&](const tax_part& part) {
    return is_sum(part) &&
           std::ranges::none_of(points, [&](const scale_point& p) { return separates(p, part); });
  });
  for (const tax_part& part : parts) columns.push_back({std::string(part.column), right});
  columns.push_back({"E4/bound", right});
  text_table table(columns);
  std::string reasons;
  for (const scale_point& p : points) {
    std::vector<std::string> cells = {std::to_string(p.ranks)};
    if (p.whole > 0) {
      cells.push_back(microseconds(p.whole));
      cells.push_back(microseconds(p.fused));
      for (const tax_part& part : parts) {
        const bool shown = separates(p, part);
        cells.push_back(shown          ? microseconds(p.parts.*part.value)
                        : is_sum(part) ? std::string()
                                       : std::string(not_separable));
      }
      cells.push_back(fmt::format("{:.2f}", p.fused / p.parts.bound));
    }
    table.add(std::move(cells));
    if (!p.refused.empty())
      reasons += wrapped(fmt::format("{} ranks: {}", p.ranks, p.refused), width);
  }
  return table.render(width, utf8) + (reasons.empty() ? "" : "\n" + reasons);
}

std::string json_of(const std::vector<scale_point>& points, const prediction_source& source,
                    const std::string& model) {
  nlohmann::ordered_json out = {{"format", "untax-taxes-scale"},
                                {"format_version", 1},
                                {"model", model},
                                {"predicted", source.text},
                                {"points", nlohmann::ordered_json::array()}};
  for (const scale_point& p : points) {
    nlohmann::ordered_json object = {{"ranks", p.ranks}};
    if (!p.refused.empty()) object["without"] = p.refused;
    if (p.whole > 0) {
      object["E0"] = p.whole;
      object["E4"] = p.fused;
      for (const tax_part& part : tax_parts) {
        nlohmann::ordered_json& value = object[std::string(part.key)];
        value = p.parts.*part.value;
        if (!is_sum(part) && !separates(p, part)) value = not_separable;
      }
    }
    out["points"].push_back(std::move(object));
  }
  return out.dump(1) + "\n";
}

}  // namespace untax::cli
