#include <untax/taxes/report.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <untax/core/error.hpp>

#include "split.hpp"

namespace untax {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw error(errc::invalid_argument, "tax report: " + text);
}

void check_time(double seconds, const std::string& what) {
  if (!std::isfinite(seconds) || seconds < 0) {
    refuse(fmt::format("{} is {} seconds; should be a finite number from 0", what, seconds));
  }
}

void check_spread(const spread& time, const std::string& what) {
  check_time(time.median, what + ", median");
  check_time(time.p10, what + ", p10");
  check_time(time.p90, what + ", p90");
}

void check_count(std::int64_t count, const std::string& what) {
  if (count < 1) refuse(fmt::format("{} is {}; should be at least 1", what, count));
}

void check_row(const tax_row& row) {
  const std::string& name = row.op.name;
  check_count(row.op.per_layer, name + ": per_layer");
  check_count(row.op.layers, name + ": layers");
  for (const tax_step& step : row.steps) {
    if (std::find(step_ids.begin(), step_ids.end(), step.id) == step_ids.end()) {
      refuse(fmt::format("{}: step \"{}\"; should be E0 to E4", name, step.id));
    }
    if (row.step(step.id) != &step) refuse(fmt::format("{}: step {} occurs twice", name, step.id));
    check_spread(step.time, fmt::format("{}, {}", name, step.id));
  }
  for (const char* id : {"E0", "E4"}) {
    if (row.step(id) == nullptr) refuse(fmt::format("{}: step {} is missing", name, id));
  }
  if (row.step("E0")->time.median <= 0) refuse(name + ": E0 took no time");
  check_spread(row.compute, name + ": compute");
  check_spread(row.link, name + ": link");
}

}  // namespace

const std::array<tax_part, 8> tax_parts = {{
    {&tax_breakdown::launch, "launch", "launch tax", "launch",
     "Starting each stage anew: E0 launches one by one, E1 launches everything at once.", true},
    {&tax_breakdown::engine, "engine", "engine", "engine",
     "Not a tax: the library's multiplication against untax's own. Should be about 0.", false},
    {&tax_breakdown::bulk_synchronous, "bulk_synchronous", "bulk-synchronous tax", "bulk-sync",
     "Waiting for the slowest rank, then for the whole transfer, instead of overlapping.", true},
    {&tax_breakdown::locality, "locality", "locality tax", "locality",
     "Storing what one stage made and loading it again for the next.", true},
    {&tax_breakdown::joint, "joint", "joint tax", "joint",
     "Several of these in one figure: the step between them was not measured, or was slower than "
     "the "
     "one before it.",
     true},
    {&tax_breakdown::stand_in, "stand_in", "cost of the stand-in", "stand-in",
     "Not a tax: what the implementation of a step costs more than the step before it, as far as "
     "E4 "
     "may still have it. It counts against the taxes.",
     false},
    {&tax_breakdown::remainder, "remainder", "remainder", "remainder",
     "What still separates the best fused pattern from the bound.", false},
    {&tax_breakdown::bound, "bound", "bound", "bound",
     "The larger of compute alone and transfers alone, both measured beside the other runs.",
     false},
}};

bool is_sum(const tax_part& part) noexcept {
  return part.value == &tax_breakdown::joint || part.value == &tax_breakdown::stand_in;
}

void tax_breakdown::add(const tax_breakdown& other, double times) noexcept {
  for (const tax_part& part : tax_parts) this->*part.value += other.*part.value * times;
}

double tax_row::bound() const noexcept { return std::max(compute.median, link.median); }

const tax_step* tax_row::step(std::string_view id) const noexcept {
  const auto match = std::find_if(steps.begin(), steps.end(),
                                  [&](const tax_step& entry) { return entry.id == id; });
  return match == steps.end() ? nullptr : &*match;
}

tax_breakdown tax_row::breakdown(const tax_report& report) const {
  return split_of(*this, report).parts;
}

tax_breakdown tax_row::uncertainty(const tax_report& report) const {
  return split_of(*this, report).chance;
}

bool tax_row::separates(const tax_part& part, const tax_report& report) const {
  return split_of(*this, report).separates(part.value);
}

std::string tax_row::why_not_separable(const tax_report& report) const {
  return fmt::to_string(fmt::join(split_of(*this, report).reasons, "; "));
}

std::vector<stand_in_cost> tax_row::stand_ins(const tax_report& report) const {
  return split_of(*this, report).stand_ins;
}

void check(const tax_report& report) {
  if (report.rows.empty()) refuse("there are no rows; a report needs one operation or more");
  check_count(report.layers, "layers");
  check_count(report.tensor_parallel, "tensor_parallel");
  check_count(report.tokens, "tokens");
  check_count(report.repeats, "repeats");
  for (const tax_row& row : report.rows) check_row(row);
}

bool separates(const tax_part& part, const tax_report& report) {
  return std::ranges::any_of(report.rows,
                             [&](const tax_row& row) { return row.separates(part, report); });
}

std::vector<tax_part> shown_parts(const tax_report& report) {
  std::vector<tax_part> parts(tax_parts.begin(), tax_parts.end());
  std::erase_if(parts, [&](const tax_part& p) { return is_sum(p) && !separates(p, report); });
  return parts;
}

std::string coverage(const tax_report& report) {
  std::vector<std::string> absent;
  for (const auto& [op, reason] : report.unmeasured) absent.push_back(op.name);
  absent.insert(absent.end(), report.left_out.begin(), report.left_out.end());
  std::string names;
  for (std::size_t i = 0; i < absent.size(); ++i) {
    names += i == 0 ? ", without " : i + 1 == absent.size() ? " and " : ", ";
    names += absent[i];
  }
  return names;
}

std::string title_of_model(const tax_report& report) {
  const std::string absent = coverage(report);
  return absent.empty() ? "whole model" : "model" + absent;
}

tax_breakdown model_total(const tax_report& report) {
  tax_breakdown sum;
  for (const tax_row& row : report.rows)
    sum.add(row.breakdown(report), static_cast<double>(row.op.occurrences()));
  return sum;
}

tax_breakdown layer_total(const tax_report& report) {
  tax_breakdown average;
  average.add(model_total(report), 1.0 / report.layers);
  return average;
}

tax_breakdown layer_uncertainty(const tax_report& report) {
  tax_breakdown sum;
  for (const tax_row& row : report.rows) {
    sum.add(row.uncertainty(report), static_cast<double>(row.op.occurrences()) / report.layers);
  }
  return sum;
}

}  // namespace untax
