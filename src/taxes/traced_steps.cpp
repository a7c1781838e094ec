#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include <untax/taxes/report.hpp>

#include "backends.hpp"
#include "time_text.hpp"

namespace untax {
namespace {

/// Differences between ablation and trace up to this part of E0 are not reported.
constexpr double agreement = 0.05;

/// A tax, the two steps whose difference it is, and the parts of a trace that belong to it.
struct tax_of_trace {
  double tax_breakdown::*value = nullptr;
  const char* title = "";
  const char* before = "";
  const char* after = "";
  std::initializer_list<trace_part> parts;
};

const std::array<tax_of_trace, 3>& taxes_of_trace() {
  using enum trace_part;
  static const std::array<tax_of_trace, 3> taxes = {
      {{&tax_breakdown::launch, "launch tax", "E0", "E1", {launch}},
       {&tax_breakdown::bulk_synchronous,
        "bulk-synchronous tax",
        "E2",
        "E3",
        {late_peer, in_flight, tail, idle, entry}},
       {&tax_breakdown::locality, "locality tax", "E3", "E4", {movement, compute}}}};
  return taxes;
}

const traced_step* traced(const tax_row& row, const char* id) {
  const auto match = std::ranges::find(row.traced, id, &traced_step::id);
  return match == row.traced.end() ? nullptr : &*match;
}

bool belongs(const tax_of_trace& tax, trace_part part) {
  return std::ranges::find(tax.parts, part) != tax.parts.end();
}

/// A text about the difference between ablation and trace; empty if they agree.
std::string difference(const tax_report& report, const tax_row& row, const tax_of_trace& tax) {
  const traced_step* before = traced(row, tax.before);
  const traced_step* after = traced(row, tax.after);
  if (before == nullptr || after == nullptr) return "";
  const auto known = std::ranges::find(tax_parts, tax.value, &tax_part::value);
  if (!row.separates(*known, report)) return "";
  trace_breakdown saved = before->path;
  saved.add(after->path, -1);
  double by_trace = 0;
  for (const trace_part part : tax.parts) by_trace += saved[part];
  const double by_ablation = row.breakdown(report).*tax.value;
  const double today = row.step("E0")->time.median;
  if (std::abs(by_trace - by_ablation) <= agreement * today) return "";
  auto other = trace_part::compute;
  double most = 0;
  for (std::size_t i = 0; i < trace_parts; ++i) {
    const auto part = static_cast<trace_part>(i);
    if (belongs(tax, part) || std::abs(saved[part]) <= std::abs(most)) continue;
    other = part;
    most = saved[part];
  }
  const time_unit unit = unit_for(today);
  return fmt::format(
      "{}: the {} is {} by ablation and {} by the trace. Of what else changes from {} to {} the "
      "largest is {}: {}; most of {} is {}.",
      row.op.name, tax.title, with_unit(by_ablation, unit), with_unit(by_trace, unit), tax.before,
      tax.after, name_of(other), with_unit(most, unit), tax.before, before->cause);
}

/// The operation with the largest total of E0 over all of its occurrences.
const tax_row* largest(const tax_report& report) {
  const auto time = [](const tax_row& row) {
    return row.step("E0")->time.median * static_cast<double>(row.op.occurrences());
  };
  const auto match = std::ranges::max_element(report.rows, {}, time);
  return match == report.rows.end() ? nullptr : &*match;
}

}  // namespace

void add_traces(tax_report& report, const trace_record& record) {
  const auto accounts = accounts_of(record);
  const tax_row* const shown = largest(report);
  for (tax_row& row : report.rows) {
    row.traced.clear();
    for (const tax_step& step : row.steps) {
      const auto account = std::ranges::find(accounts, label_of(row.op, step.id, step.ran),
                                             &operator_account::label);
      if (account == accounts.end()) continue;
      row.traced.push_back(
          {step.id, account->path, account->ranks, account->causes.front().text(), {}});
      if (&row == shown && (step.id == "E1" || step.id == "E4"))
        row.traced.back().timeline = typical_timeline(record, *account);
    }
  }
}

std::vector<std::string> trace_differences(const tax_report& report) {
  std::vector<std::string> texts;
  for (const tax_row& row : report.rows) {
    for (const tax_of_trace& tax : taxes_of_trace()) {
      std::string text = difference(report, row, tax);
      if (!text.empty()) texts.push_back(std::move(text));
    }
  }
  return texts;
}

}  // namespace untax
