#include <untax/taxes/report.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

constexpr std::array<std::string_view, 5> step_ids = {"E0", "E1", "E2", "E3", "E4"};

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

/// The factor by which (p90 - p10) / sqrt(n) has to be multiplied, so that it holds for a few runs
/// of a normal distribution, too. Few runs underestimate the spread.
double factor_of(int repeats) {
  if (repeats <= 2) return 18;
  return repeats == 3 ? 4.2 : 1 + 4.0 / (repeats - 1);
}

/// In about 95 % of cases chance has moved the median by less than this. For a normal distribution
/// p90 - p10 is 2.56 sigma and the median's standard error 1.25 sigma / sqrt(n), so 1.96 standard
/// errors are close to (p90 - p10) / sqrt(n).
double error_of_time(const spread& time, int repeats) noexcept {
  if (repeats < 2) return std::numeric_limits<double>::infinity();
  return factor_of(repeats) * (time.p90 - time.p10) / std::sqrt(repeats);
}

constexpr std::size_t e2 = 2;
constexpr std::size_t e3 = 3;
constexpr std::size_t e4 = 4;

/// The times of all steps. A step that was not measured gets the times of the step before it.
std::array<spread, step_ids.size()> times_of(const tax_row& row) noexcept {
  std::array<spread, step_ids.size()> times{};
  for (std::size_t i = 0; i < step_ids.size(); ++i) {
    const tax_step* measured = row.step(step_ids[i]);
    if (measured != nullptr) times[i] = measured->time;
    if (measured == nullptr && i > 0) times[i] = times[i - 1];
  }
  return times;
}

/// Whether E3 is slower than E2, or the step before it that was measured, or faster than E4, by
/// more than chance explains.
bool is_outside(const std::array<spread, step_ids.size()>& times, int repeats) noexcept {
  const auto above = [&](std::size_t a, std::size_t b) {
    const double chance =
        std::hypot(error_of_time(times[a], repeats), error_of_time(times[b], repeats));
    return times[a].median - times[b].median > chance;
  };
  return above(e3, e2) || above(e4, e3);
}

/// The steps, by number, whose differences are parts.
std::vector<int> anchors_of(const tax_row& row, const tax_report& report) noexcept {
  const auto times = times_of(row);
  std::vector<int> anchors;
  for (std::size_t i = 0; i < step_ids.size(); ++i) {
    // One rank sends nothing, so its E3 is its E2.
    const bool measured =
        row.step(step_ids[i]) != nullptr || (i == e3 && report.tensor_parallel == 1);
    const bool outside = i == e3 && row.step("E3") != nullptr && is_outside(times, report.repeats);
    if (measured && !outside) anchors.push_back(static_cast<int>(i));
  }
  return anchors;
}

/// The part that is the difference of two steps.
double tax_breakdown::*member_between(int before, int step) noexcept {
  if (step - before > 1) return &tax_breakdown::joint;
  return tax_parts[static_cast<std::size_t>(before)].value;
}

}  // namespace

const std::array<tax_part, 7> tax_parts = {{
    {&tax_breakdown::launch, "launch", "launch tax", "launch",
     "Starting each stage anew: E0 launches one by one, E1 launches everything at once.", true},
    {&tax_breakdown::engine, "engine", "engine", "engine",
     "Not a tax: the library's multiplication against untax's own. Should be about 0.", false},
    {&tax_breakdown::bulk_synchronous, "bulk_synchronous", "bulk-synchronous tax", "bulk-sync",
     "Waiting for the slowest rank, then for the whole transfer, instead of overlapping.", true},
    {&tax_breakdown::locality, "locality", "locality tax", "locality",
     "Storing what one stage made and loading it again for the next.", true},
    {&tax_breakdown::joint, "joint", "joint tax", "joint",
     "Several of these in one figure, where the step between them was not measured, or was slower "
     "than the one before it.",
     true},
    {&tax_breakdown::remainder, "remainder", "remainder", "remainder",
     "What still separates the best fused pattern from the bound.", false},
    {&tax_breakdown::bound, "bound", "bound", "bound",
     "The larger of compute alone and transfers alone, both measured beside the other runs.",
     false},
}};

void tax_breakdown::add(const tax_breakdown& other, double times) noexcept {
  for (const tax_part& part : tax_parts) this->*part.value += other.*part.value * times;
}

double tax_row::bound() const noexcept { return std::max(compute.median, link.median); }

const tax_step* tax_row::step(std::string_view id) const noexcept {
  const auto match = std::find_if(steps.begin(), steps.end(),
                                  [&](const tax_step& entry) { return entry.id == id; });
  return match == steps.end() ? nullptr : &*match;
}

tax_breakdown tax_row::breakdown(const tax_report& report) const noexcept {
  const auto spreads = times_of(*this);
  tax_breakdown parts;
  int before = 0;
  for (const int step : anchors_of(*this, report)) {
    if (step == 0) continue;
    const double part = spreads[static_cast<std::size_t>(before)].median -
                        spreads[static_cast<std::size_t>(step)].median;
    parts.*member_between(before, step) += part;
    before = step;
  }
  parts.bound = bound();
  parts.remainder = spreads.back().median - parts.bound;
  return parts;
}

tax_breakdown tax_row::uncertainty(const tax_report& report) const noexcept {
  const auto spreads = times_of(*this);
  const auto error_of = [&](std::size_t step) {
    return error_of_time(spreads[step], report.repeats);
  };
  tax_breakdown chance;
  int before = 0;
  for (const int step : anchors_of(*this, report)) {
    if (step == 0) continue;
    double& part = chance.*member_between(before, step);
    // std::hypot of three arguments is not used: it is NaN for two infinities.
    part = std::hypot(part, std::hypot(error_of(static_cast<std::size_t>(before)),
                                       error_of(static_cast<std::size_t>(step))));
    before = step;
  }
  chance.bound = error_of_time(compute.median >= link.median ? compute : link, report.repeats);
  chance.remainder = std::hypot(error_of(step_ids.size() - 1), chance.bound);
  return chance;
}

bool tax_row::separates(const tax_part& part, const tax_report& report) const noexcept {
  if (part.value == &tax_breakdown::remainder || part.value == &tax_breakdown::bound) return true;
  int before = 0;
  for (const int step : anchors_of(*this, report)) {
    if (step > 0 && member_between(before, step) == part.value) return true;
    before = step;
  }
  return false;
}

std::string tax_row::why_joint(const tax_report& report) const {
  const std::vector<int> anchors = anchors_of(*this, report);
  std::string text;
  std::string_view before = step_ids[0];
  for (std::size_t i = 1; i + 1 < step_ids.size(); ++i) {
    const bool measured = step(step_ids[i]) != nullptr;
    if (std::ranges::find(anchors, static_cast<int>(i)) == anchors.end()) {
      text += fmt::format(
          "{}{} {}, so {} and {} are not separable here", text.empty() ? "" : "; ", step_ids[i],
          measured ? fmt::format("is not between {} and E4", before) : "was not measured",
          tax_parts[i - 1].title, tax_parts[i].title);
    }
    if (measured) before = step_ids[i];
  }
  return text;
}

void check(const tax_report& report) {
  if (report.rows.empty()) refuse("has no rows; should hold at least one operation");
  check_count(report.layers, "layers");
  check_count(report.tensor_parallel, "tensor_parallel");
  check_count(report.tokens, "tokens");
  check_count(report.repeats, "repeats");
  for (const tax_row& row : report.rows) check_row(row);
}

std::vector<tax_part> shown_parts(const tax_report& report) {
  std::vector<tax_part> parts(tax_parts.begin(), tax_parts.end());
  const bool joint = std::ranges::any_of(
      report.rows, [&](const tax_row& row) { return !row.why_joint(report).empty(); });
  if (!joint)
    std::erase_if(parts, [](const tax_part& p) { return p.value == &tax_breakdown::joint; });
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
