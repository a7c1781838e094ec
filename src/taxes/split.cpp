#include "split.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace untax {
namespace {

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

/// A time with its uncertainty.
struct level {
  std::size_t step = 0;
  double seconds = 0;
  double error = 0;
};

constexpr std::size_t eager_to_graph = 1;
constexpr std::size_t own_engine = 2;
constexpr std::size_t no_barrier = 3;
constexpr std::size_t fused = 4;

/// Goes through the steps from E0 to E4 and takes a figure for each difference.
class splitter {
 public:
  splitter(const tax_row& row, const tax_report& report)
      : row_(row), repeats_(report.repeats), one_rank_(report.tensor_parallel == 1) {
    bound_ = {0, row.bound(), error_of_time(bound_spread(), repeats_)};
    at_ = *measured(0);
  }

  tax_split split() && {
    for (std::size_t i = 1; i < step_ids.size(); ++i) {
      if (const auto to = measured(i)) {
        advance(*to);
      } else if (!(one_rank_ && i == no_barrier)) {
        skipped_.push_back(fmt::format("{} was not measured", step_ids[i]));
      }
    }
    end_at_the_bound();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const spread& bound_spread() const {
    return row_.compute.median >= row_.link.median ? row_.compute : row_.link;
  }
  [[nodiscard]] std::optional<level> measured(std::size_t step) const {
    const tax_step* known = row_.step(step_ids[step]);
    if (known == nullptr) return std::nullopt;
    return level{step, known->time.median, error_of_time(known->time, repeats_)};
  }

  /// The parts between two steps. A single rank waits for nobody.
  [[nodiscard]] std::vector<tax_member> parts_between(std::size_t before, std::size_t after) const {
    std::vector<tax_member> parts;
    for (std::size_t i = before; i < after; ++i) {
      const tax_member part = tax_parts[i].value;
      if (!one_rank_ || part != &tax_breakdown::bulk_synchronous) parts.push_back(part);
    }
    return parts;
  }

  /// Whether E4 may still have the cost of a step. E4 begins as E1 does and multiplies as E2 does,
  /// but a cost that is larger than all that separates E4 from the bound cannot be in it. E3
  /// differs from E2 in what it leaves out alone, so its cost ends with it.
  [[nodiscard]] bool stays(std::size_t step, double cost, double doubt) const {
    if (step == fused) return true;
    if (step != eager_to_graph && step != own_engine) return false;
    const level last = *measured(fused);
    const double room = std::max(0.0, last.seconds - bound_.seconds);
    return cost - room <= std::hypot(doubt, std::hypot(last.error, bound_.error));
  }

  void advance(const level& to) {
    const double gain = at_.seconds - to.seconds;
    // Not std::hypot of three, which is NaN for two infinities.
    const double doubt = std::hypot(at_.error, to.error);
    if (-gain > doubt) {
      const bool counted = stays(to.step, -gain, doubt);
      const std::string slower =
          fmt::format("{} took longer than {}", step_ids[to.step], step_ids[at_.step]);
      out_.stand_ins.push_back(
          {std::string(step_ids[to.step]), std::string(step_ids[at_.step]), -gain, doubt, counted});
      skipped_.push_back(slower);
      if (!counted) return;
      take(to, &tax_breakdown::stand_in, gain, doubt);
    } else {
      const auto parts = parts_between(at_.step, to.step);
      take(to, parts.size() == 1 ? parts.front() : &tax_breakdown::joint, gain, doubt);
    }
    at_ = to;
    skipped_.clear();
  }

  void take(const level& to, tax_member figure, double gain, double doubt) {
    tax_span span{step_ids[at_.step], step_ids[to.step], parts_between(at_.step, to.step), figure};
    out_.parts.*figure += gain;
    // Of several differences as if all errors had the same sign, as in a layer.
    out_.chance.*figure += doubt;
    const bool cost = figure == &tax_breakdown::stand_in;
    if (cost || span.parts.size() > 1) {
      std::vector<std::string> titles;
      for (const tax_member part : span.parts) titles.emplace_back(title_of(part));
      out_.reasons.push_back(fmt::format("{}, so {} {} not separable {}", enumerated(skipped_),
                                         enumerated(titles), titles.size() == 1 ? "is" : "are",
                                         cost ? "from the cost of the stand-in" : "here"));
    }
    out_.spans.push_back(std::move(span));
  }

  /// A bound cannot be longer than a run, so at most all of E4 is the bound.
  void end_at_the_bound() {
    const double rest = at_.seconds - bound_.seconds;
    const double doubt = std::hypot(at_.error, bound_.error);
    out_.bound_is_invalid = -rest > doubt;
    out_.parts.bound = out_.bound_is_invalid ? at_.seconds : bound_.seconds;
    out_.parts.remainder = out_.bound_is_invalid ? 0 : rest;
    out_.chance.bound = bound_.error;
    out_.chance.remainder = doubt;
    if (out_.bound_is_invalid) {
      out_.reasons.emplace_back(
          "E4 is below the bound, so remainder and bound are not separable, and all of E4 counts "
          "as "
          "bound");
    }
  }

  const tax_row& row_;
  int repeats_;
  bool one_rank_;
  level bound_;
  level at_;
  std::vector<std::string> skipped_;  ///< why steps since `at_` are no ends of spans
  tax_split out_;
};

}  // namespace

bool tax_split::separates(tax_member part) const {
  if (part == &tax_breakdown::remainder) return !bound_is_invalid;
  const bool sum = part == &tax_breakdown::joint || part == &tax_breakdown::stand_in;
  if (sum) return std::ranges::find(spans, part, &tax_span::figure) != spans.end();
  return std::ranges::none_of(spans, [&](const tax_span& span) {
    return span.figure != part && std::ranges::find(span.parts, part) != span.parts.end();
  });
}

tax_split split_of(const tax_row& row, const tax_report& report) {
  return splitter(row, report).split();
}

std::string enumerated(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  return text;
}

std::string_view title_of(tax_member part) {
  return std::ranges::find(tax_parts, part, &tax_part::value)->title;
}

}  // namespace untax
