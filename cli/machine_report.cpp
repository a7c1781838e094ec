#include "machine_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/taxes/text_table.hpp>

#include "cell_text.hpp"
#include "ops/timing/judgement.hpp"

namespace untax::cli {

namespace {

constexpr std::size_t shown = 20;  // number of the worst figures
constexpr std::size_t source_indent = 17;

std::string percent(double share) { return fmt::format("{:+.0f} %", 100 * share); }

struct bar {
  std::string what;
  std::string value;
  std::string right;
  bool met;
};

std::vector<bar> bars_of(const judgement& j) {
  const auto share = [](int part, int total) { return total == 0 ? 1.0 : 1.0 * part / total; };
  const double orders = share(j.orders_right, j.orders);
  std::vector<bar> bars = {{"mean absolute error", fmt::format("{:.1f} %", 100 * j.mean_error),
                            "at most 12 %", j.mean_error <= 0.12},
                           {"figures within 25 %", fmt::format("{:.1f} %", 100 * j.within_quarter),
                            "at least 90 %", j.within_quarter >= 0.9},
                           {"best two patterns in the right order, or within 3 %",
                            fmt::format("{:.1f} %", 100 * orders), "at least 90 %", orders >= 0.9}};
  if (!j.terms.empty()) {
    bars.push_back({"terms E0 to E4 within 25 %, or 5 % of E0",
                    fmt::format("{} of {}", j.good_terms(), j.terms.size()), "all",
                    j.good_terms() == static_cast<int>(j.terms.size())});
  }
  return bars;
}

std::string head_of(const judgement& j, const timing::machine& m) {
  return fmt::format(
      "{} figures of {} GPUs, predicted by the numbers of {}; of these figures nothing was fitted.",
      j.figures.size(), j.ranks, m.title());
}

using rows = std::vector<std::vector<std::string>>;

rows rows_of_bars(const judgement& j) {
  rows table;
  for (const bar& b : bars_of(j))
    table.push_back({b.what, b.value, b.right, b.met ? "met" : "missed"});
  return table;
}
rows rows_of_groups(const judgement& j) {
  rows table;
  for (const judged_group& g : j.groups) {
    table.push_back({g.name, std::to_string(g.figures), fmt::format("{:.1f} %", 100 * g.mean),
                     percent(g.worst), fmt::format("{:.0f} %", 100 * g.within)});
  }
  return table;
}
rows rows_of_terms(const judgement& j) {
  rows table;
  for (const judged_term& t : j.terms) {
    timed_case c = t.row.what;
    c.by = fmt::format("E{}", t.term);
    table.push_back({c.text(), microseconds(t.row.steps[t.term]), microseconds(t.seconds),
                     percent(t.error()), t.good() ? "" : "missed"});
  }
  return table;
}
rows rows_of_worst(const judgement& j) {
  rows table;
  for (std::size_t i = 0; i < std::min(shown, j.figures.size()); ++i) {
    const judged& figure = j.figures[i];
    table.push_back({figure.what.what.text(), microseconds(figure.what.seconds),
                     microseconds(figure.seconds), percent(figure.error())});
  }
  return table;
}

struct section {
  std::string title;
  std::vector<text_table::column> columns;
  rows lines;
};

std::vector<section> sections_of(const judgement& j) {
  constexpr auto right = text_table::align::right;
  std::vector<section> sections = {
      {"Bars", {{"what"}, {"found", right}, {"bar"}, {""}}, rows_of_bars(j)},
      {"By operator and way, the worst first",
       {{"what"},
        {"figures", right},
        {"mean error", right},
        {"worst", right},
        {"within 25 %", right}},
       rows_of_groups(j)}};
  if (!j.terms.empty()) {
    sections.push_back(
        {"Terms of the taxes, the worst first",
         {{"term"}, {"measured, us", right}, {"predicted, us", right}, {"error", right}, {""}},
         rows_of_terms(j)});
  }
  sections.push_back(
      {"The worst figures",
       {{"figure"}, {"measured, us", right}, {"predicted, us", right}, {"error", right}},
       rows_of_worst(j)});
  return sections;
}

}  // namespace

std::string text_of(const timing::machine& m, int width, bool utf8) {
  text_table table({{"number"}, {"value", text_table::align::right}, {"unit"}, {"what it is"}});
  std::string sources;
  for (const timing::number_kind& kind : timing::number_kinds) {
    const auto from = m.sources.find(kind.key);
    table.add({std::string(kind.key), fmt::format("{:g}", m.numbers.*kind.value),
               std::string(kind.unit), std::string(kind.meaning)});
    if (from != m.sources.end()) {
      std::string source = wrapped(from->second, width, std::string(source_indent, ' '));
      source.replace(0, kind.key.size(), kind.key);
      sources += source;
    }
  }
  const std::string ranks = m.cores ? fmt::format("{} cores of one host", m.gpus)
                                    : fmt::format("{} GPUs, {} a host", m.gpus, m.gpus_of_host);
  return fmt::format("{}: {}, links: {}\n\n{}\nWhere they are from\n\n{}", m.title(), ranks,
                     name_of(m.links), table.render(width, utf8), sources);
}

std::string text_of(const judgement& verdict, const timing::machine& m, int width, bool utf8) {
  std::string text = wrapped(head_of(verdict, m), width);
  for (const section& s : sections_of(verdict)) {
    text_table table(s.columns);
    for (const auto& line : s.lines) table.add(line);
    text += fmt::format("\n{}\n\n{}", s.title, table.render(width, utf8));
  }
  return text;
}

std::string markdown_of(const judgement& verdict, const timing::machine& m) {
  std::string text = head_of(verdict, m) + "\n";
  for (const section& s : sections_of(verdict)) {
    text += fmt::format("\n### {}\n\n|", s.title);
    for (const auto& column : s.columns) text += fmt::format(" {} |", column.title);
    text += "\n|";
    for (const auto& column : s.columns)
      text += column.side == text_table::align::right ? "---:|" : "---|";
    for (const auto& line : s.lines) {
      text += "\n|";
      for (const std::string& cell : line) text += fmt::format(" {} |", cell);
    }
    text += "\n";
  }
  return text;
}

std::string json_of(const judgement& verdict, const timing::machine& m) {
  using json = nlohmann::ordered_json;
  json out = {{"format", "untax-judgement"},
              {"format_version", 1},
              {"machine", m.name},
              {"ranks", verdict.ranks},
              {"figures", verdict.figures.size()},
              {"mean_error", verdict.mean_error},
              {"within_quarter", verdict.within_quarter},
              {"orders", verdict.orders},
              {"orders_right", verdict.orders_right},
              {"terms", verdict.terms.size()},
              {"good_terms", verdict.good_terms()}};
  for (const judged& figure : verdict.figures) {
    out["all"].push_back({{"what", figure.what.what.text()},
                          {"file", figure.what.file},
                          {"seconds", figure.what.seconds},
                          {"predicted", figure.seconds}});
  }
  return out.dump(1) + "\n";
}

namespace {

std::string beside(const std::string& file, const std::string& name) {
  return (std::filesystem::path(file).parent_path() / name).string();
}

}  // namespace

calibration calibration_of(const timing::machine& m, const std::string& file) {
  if (m.calibration.empty()) return {};
  return load_calibration(beside(file, m.calibration));
}

bool is_uncalibrated(const timing::machine& m, const std::string& file) {
  return m.calibration.empty() || !std::filesystem::exists(beside(file, m.calibration));
}

namespace {

std::string error_text(const timing::machine& m, const calibration& known,
                       const std::string& file) {
  if (m.judgement.empty() || !std::filesystem::exists(beside(file, m.judgement)))
    return ", which was not judged on such a machine";
  const judgement_summary judged = load_judgement(beside(file, m.judgement));
  const bool same = judged.fingerprint == fingerprint_of(m, known);
  if (!same && m.device == judged.device) return ", which was not judged with these numbers";
  return fmt::format(
      ", whose mean error on measurements{} is {:.1f} %, and more for single figures "
      "(docs/timing.md)",
      m.measured && same ? std::string()
                         : fmt::format(", of {} x {},", judged.ranks, judged.device),
      100 * judged.mean_error);
}

}  // namespace

std::string prediction_text(const timing::machine& m, const calibration& known,
                            const std::string& file) {
  std::string text = fmt::format("predicted for {} by untax's timing engine", m.title()) +
                     error_text(m, known, file);
  if (m.calibration.empty()) {
    text += "; the description has no calibration";
  } else if (is_uncalibrated(m, file)) {
    text += fmt::format("; without a calibration, since {} is not beside the description",
                        m.calibration);
  }
  return text;
}

}  // namespace untax::cli
