#include <untax/taxes/verdict.hpp>

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "split.hpp"

namespace untax {
namespace {

gain gain_of(double graph, double fused, double doubt) noexcept {
  const double won = graph - fused;
  if (!std::isfinite(won) || !std::isfinite(doubt) || !(fused > 0)) return gain::unknown;
  if (won > doubt) return gain::faster;
  return -won > doubt ? gain::slower : gain::none;
}

bound_state state_of(double bound, double remainder, double doubt) noexcept {
  if (!(bound > 0) || !std::isfinite(bound) || std::isnan(remainder)) return bound_state::absent;
  if (remainder >= 0) return bound_state::holds;
  if (!std::isfinite(doubt)) return bound_state::unknown;
  return -remainder > doubt ? bound_state::invalid : bound_state::reached;
}

/// The largest tax that is above its uncertainty, or null.
const tax_part* largest_of(const tax_breakdown& parts, const tax_breakdown& chance) noexcept {
  const tax_part* largest = nullptr;
  for (const tax_part& part : tax_parts) {
    const double value = parts.*part.value;
    if (!part.is_tax || !(value > 0) || !std::isfinite(value)) continue;
    if (is_doubtful(value, chance.*part.value)) continue;
    if (largest == nullptr || value > parts.*largest->value) largest = &part;
  }
  return largest;
}

/// The other tax that, within the uncertainty, may be larger than `largest`, or null.
const tax_part* rival_of(const tax_part& largest, const tax_breakdown& parts,
                         const tax_breakdown& chance) noexcept {
  const tax_part* rival = nullptr;
  double most = 0;
  for (const tax_part& part : tax_parts) {
    if (!part.is_tax || &part == &largest) continue;
    const double behind = parts.*largest.value - parts.*part.value;
    const double doubt = std::hypot(chance.*largest.value, chance.*part.value);
    if (behind > doubt) continue;
    const double possible = parts.*part.value + chance.*part.value;
    if (rival != nullptr && !(possible > most)) continue;
    rival = &part;
    most = possible;
  }
  return rival;
}

}  // namespace

bool is_doubtful(double value, double chance) noexcept {
  return std::isnan(value) || std::isnan(chance) || (chance > 0 && std::abs(value) <= chance);
}

tax_verdict judge(const tax_breakdown& parts, const tax_breakdown& chance) noexcept {
  const double eager = parts.total();
  const double graph = eager - parts.launch;  // E1, as in programs that decode
  const double fused = parts.bound + parts.remainder;
  tax_verdict v;
  // The errors of E1 and E4 are parts of the errors of the first and of the last difference.
  v.fusing = gain_of(graph, fused, std::hypot(chance.launch, chance.remainder));
  if (v.fusing == gain::faster || v.fusing == gain::slower) {
    v.speedup = graph / fused;
    v.speedup_eager = eager / fused;
  }
  v.largest = largest_of(parts, chance);
  v.tells_taxes = v.largest != nullptr;
  if (v.fusing == gain::none) v.largest = nullptr;
  if (v.largest != nullptr) v.rival = rival_of(*v.largest, parts, chance);
  v.bound = state_of(parts.bound, parts.remainder, chance.remainder);
  if (v.bound == bound_state::holds || v.bound == bound_state::reached)
    v.over_bound = fused / parts.bound;
  return v;
}

tax_verdict verdict_of(const tax_row& row, const tax_report& report) {
  const tax_split split = split_of(row, report);
  tax_verdict v = judge(split.parts, split.chance);
  if (split.bound_is_invalid) {
    v.bound = bound_state::invalid;
    v.over_bound = 0;
  }
  return v;
}

tax_verdict verdict_of(const tax_report& report) {
  tax_verdict v = judge(layer_total(report), layer_uncertainty(report));
  bool unknown = false;
  for (const tax_row& row : report.rows) {
    const bound_state state = verdict_of(row, report).bound;
    if (state == bound_state::invalid) v.bound = state;
    unknown = unknown || state == bound_state::unknown;
  }
  if (unknown && v.bound != bound_state::invalid) v.bound = bound_state::unknown;
  if (v.bound == bound_state::invalid || v.bound == bound_state::unknown) v.over_bound = 0;
  return v;
}

std::string_view name_of(gain fusing) noexcept {
  switch (fusing) {
    case gain::faster:
      return "faster";
    case gain::slower:
      return "slower";
    case gain::none:
      return "no difference";
    case gain::unknown:
      break;
  }
  return "unknown";
}

std::string_view name_of(bound_state bound) noexcept {
  switch (bound) {
    case bound_state::absent:
      return "absent";
    case bound_state::holds:
      return "holds";
    case bound_state::reached:
      return "reached";
    case bound_state::invalid:
      return "invalid";
    case bound_state::unknown:
      break;
  }
  return "unknown";
}

std::string over_bound_text(const tax_verdict& verdict) {
  switch (verdict.bound) {
    case bound_state::absent:
      return "";
    case bound_state::holds:
      return fmt::format("{:.2f}", verdict.over_bound);
    case bound_state::reached:
      return fmt::format("~{:.2f}", verdict.over_bound);
    default:
      return std::string(name_of(verdict.bound));
  }
}

std::string gain_text(const tax_verdict& verdict) {
  switch (verdict.fusing) {
    case gain::faster:
      return fmt::format("{:.2f} times as fast as E1, {:.2f} times as fast as E0", verdict.speedup,
                         verdict.speedup_eager);
    case gain::slower:
      return "fusing loses here";
    case gain::none:
      return "no difference that this measurement can tell";
    case gain::unknown:
      break;
  }
  return "the effect of chance on a single run is unknown";
}

std::string bound_text(const tax_verdict& verdict) {
  switch (verdict.bound) {
    case bound_state::absent:
      return "There is no bound.";
    case bound_state::holds:
      return "Nothing that computes and sends the same can be faster than the bound.";
    case bound_state::reached:
      return "The bound is reached, as far as this measurement can tell.";
    case bound_state::invalid:
      return "The bound is invalid: E4 is below it by more than the uncertainty, so compute or "
             "transfers alone were measured too slow.";
    case bound_state::unknown:
      break;
  }
  return "E4 is below the bound; after a single run it is unknown whether by chance.";
}

std::string invalid_bounds(const tax_report& report) {
  std::vector<std::string> names;
  for (const tax_row& row : report.rows) {
    if (verdict_of(row, report).bound == bound_state::invalid) names.push_back(row.op.name);
  }
  return enumerated(names);
}

}  // namespace untax
