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

}  // namespace

const std::array<tax_part, 6> tax_parts = {{
    {&tax_breakdown::launch, "launch", "launch tax", "launch",
     "Starting each stage anew: E0 launches one by one, E1 launches everything at once.", true},
    {&tax_breakdown::engine, "engine", "engine", "engine",
     "Not a tax: the library's multiplication against untax's own. Should be about 0.", false},
    {&tax_breakdown::bulk_synchronous, "bulk_synchronous", "bulk-synchronous tax", "bulk-sync",
     "Waiting for the slowest rank, then for the whole transfer, instead of overlapping.", true},
    {&tax_breakdown::locality, "locality", "locality tax", "locality",
     "Storing what one stage made and loading it again for the next.", true},
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
  const auto found =
      std::find_if(steps.begin(), steps.end(), [&](const tax_step& one) { return one.id == id; });
  return found == steps.end() ? nullptr : &*found;
}

tax_breakdown tax_row::breakdown() const noexcept {
  std::array<double, step_ids.size()> time{};
  for (std::size_t i = 0; i < step_ids.size(); ++i) {
    const tax_step* measured = step(step_ids[i]);
    time[i] = measured != nullptr ? measured->time.median : (i > 0 ? time[i - 1] : 0.0);
  }
  return {time[0] - time[1], time[1] - time[2], time[2] - time[3],
          time[3] - time[4], time[4] - bound(), bound()};
}

tax_breakdown tax_row::uncertainty(int repeats) const noexcept {
  // For a normal distribution p90 - p10 is 2.56 sigma and the median's standard error 1.25 sigma /
  // sqrt(n), so 1.96 standard errors are close to (p90 - p10) / sqrt(n).
  const auto error_of_time = [&](const spread& time) {
    if (repeats < 2) return std::numeric_limits<double>::infinity();
    return factor_of(repeats) * (time.p90 - time.p10) / std::sqrt(repeats);
  };
  std::array<double, step_ids.size()> error_of{};
  for (std::size_t i = 0; i < step_ids.size(); ++i) {
    const tax_step* measured = step(step_ids[i]);
    error_of[i] =
        measured != nullptr ? error_of_time(measured->time) : (i > 0 ? error_of[i - 1] : 0.0);
  }
  const auto between = [&](std::size_t i) {
    return step(step_ids[i + 1]) == nullptr ? 0.0 : std::hypot(error_of[i], error_of[i + 1]);
  };
  const double bound_error = error_of_time(compute.median >= link.median ? compute : link);
  return {between(0), between(1), between(2), between(3), std::hypot(error_of[4], bound_error),
          bound_error};
}

void check(const tax_report& report) {
  if (report.rows.empty()) refuse("has no rows; should hold at least one operation");
  check_count(report.layers, "layers");
  check_count(report.tensor_parallel, "tensor_parallel");
  check_count(report.tokens, "tokens");
  check_count(report.repeats, "repeats");
  for (const tax_row& row : report.rows) check_row(row);
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
    sum.add(row.breakdown(), static_cast<double>(row.op.occurrences()));
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
    sum.add(row.uncertainty(report.repeats),
            static_cast<double>(row.op.occurrences()) / report.layers);
  }
  return sum;
}

}  // namespace untax
