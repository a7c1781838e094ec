#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <untax/taxes/report.hpp>
#include <untax/taxes/verdict.hpp>

#include "backends.hpp"
#include "split.hpp"
#include "time_text.hpp"

namespace untax {
namespace {

/// Differences between ablation and trace up to this part of E0 are not reported.
constexpr double agreement = 0.05;

using parts_of_trace = std::set<trace_part>;

/// The parts of a trace that belong to a part of E0.
parts_of_trace parts_of(tax_member part) {
  using enum trace_part;
  if (part == &tax_breakdown::launch) return {launch};
  if (part == &tax_breakdown::bulk_synchronous) return {late_peer, in_flight, tail, idle, entry};
  if (part == &tax_breakdown::locality) return {movement, in_flight, compute};
  return {movement, compute};  // of another engine
}

const traced_step* traced(const tax_row& row, std::string_view id) {
  const auto match = std::ranges::find(row.traced, id, &traced_step::id);
  return match == row.traced.end() ? nullptr : &*match;
}

bool is_tax(tax_member part) {
  return std::ranges::find(tax_parts, part, &tax_part::value)->is_tax;
}

/// The largest change between two steps that does not belong to the tax.
std::pair<trace_part, double> largest_of_others(const trace_breakdown& saved,
                                                const parts_of_trace& own) {
  std::pair<trace_part, double> most{trace_part::compute, 0};
  for (std::size_t i = 0; i < trace_parts; ++i) {
    const auto part = static_cast<trace_part>(i);
    if (!own.contains(part) && std::abs(saved[part]) > std::abs(most.second))
      most = {part, saved[part]};
  }
  return most;
}

std::string titles_of(const std::vector<tax_member>& parts) {
  std::vector<std::string> titles;
  for (const tax_member part : parts) titles.emplace_back(title_of(part));
  return enumerated(titles);
}

/// The two accounts of the figure of a span; nothing if it is no tax, or a step has no trace.
std::optional<traced_tax> compared(const tax_row& row, const tax_split& split,
                                   const tax_span& span) {
  const traced_step* before = traced(row, span.before);
  const traced_step* after = traced(row, span.after);
  if (!is_tax(span.figure) || before == nullptr || after == nullptr) return std::nullopt;
  // An operation may have two joint taxes. Each is compared by itself.
  const double gain = row.step(span.before)->time.median - row.step(span.after)->time.median;
  parts_of_trace own;
  for (const tax_member part : span.parts) own.merge(parts_of(part));
  trace_breakdown saved = before->path;
  saved.add(after->path, -1);
  traced_tax tax{.operation = row.op.name,
                 .tax = titles_of(span.parts),
                 .before = std::string(span.before),
                 .after = std::string(span.after),
                 .by_ablation = gain,
                 .uncertainty = split.chance.*span.figure,
                 .by_trace = 0,
                 .agrees = std::nullopt,
                 .difference = ""};
  for (const trace_part part : own) tax.by_trace += saved[part];
  if (!is_doubtful(tax.by_ablation, tax.uncertainty))
    tax.agrees = (tax.by_ablation > 0) == (tax.by_trace > 0);
  const double today = row.step("E0")->time.median;
  const bool near = std::abs(tax.by_trace - tax.by_ablation) <= agreement * today;
  if (near && tax.agrees.value_or(true)) return tax;
  const auto [other, most] = largest_of_others(saved, own);
  const time_unit unit = unit_for(today);
  tax.difference = fmt::format(
      "{}: {} is {} by ablation and {} by the trace. Of what else changes from {} to {} the "
      "largest "
      "is {}: {}; most of {} is {}.",
      tax.operation, tax.tax, with_unit(tax.by_ablation, unit), with_unit(tax.by_trace, unit),
      tax.before, tax.after, name_of(other), with_unit(most, unit), tax.before, before->cause);
  return tax;
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

void add_trace(tax_row& row, const trace_record& record) {
  const auto accounts = accounts_of(record);
  row.traced.clear();
  for (const tax_step& step : row.steps) {
    const auto account =
        std::ranges::find(accounts, label_of(row.op, step.id, step.ran), &operator_account::label);
    if (account == accounts.end()) continue;
    row.traced.push_back(
        {step.id, account->path, account->ranks, account->causes.front().text(), {}});
    if (step.id == "E1" || step.id == "E4")
      row.traced.back().timeline = typical_timeline(record, *account);
  }
}

void add_traces(tax_report& report, const trace_record& record) {
  for (tax_row& row : report.rows) add_trace(row, record);
  keep_longest_timeline(report);
}

void keep_longest_timeline(tax_report& report) {
  const tax_row* const shown = largest(report);
  for (tax_row& row : report.rows) {
    if (&row == shown) continue;
    for (traced_step& step : row.traced) step.timeline.clear();
  }
}

std::vector<traced_tax> traced_taxes(const tax_report& report) {
  std::vector<traced_tax> taxes;
  for (const tax_row& row : report.rows) {
    const tax_split split = split_of(row, report);
    for (const tax_span& span : split.spans) {
      if (auto tax = compared(row, split, span)) taxes.push_back(*std::move(tax));
    }
  }
  return taxes;
}

std::string agreement_text(const tax_report& report) {
  const auto taxes = traced_taxes(report);
  if (taxes.empty()) return "There is no second account, by a trace, beside this one.";
  const auto told =
      std::ranges::count_if(taxes, [](const auto& t) { return t.agrees.has_value(); });
  const auto agree = std::ranges::count(taxes, std::optional(true), &traced_tax::agrees);
  if (told == 0)
    return "No tax of an operation is larger than its uncertainty, so signs cannot be compared "
           "with "
           "those of the trace.";
  return fmt::format(
      "Ablation and trace agree in sign for {} of {} taxes of operations that are larger than "
      "their "
      "uncertainty.",
      agree, told);
}

}  // namespace untax
