#include <cmath>

#include <fmt/format.h>

#include <untax/taxes/report.hpp>
#include <untax/taxes/verdict.hpp>

#include "time_text.hpp"

namespace untax {
namespace {

struct layer_figures {
  tax_breakdown parts;
  tax_breakdown chance;
  time_unit unit;

  [[nodiscard]] std::string time(double seconds) const { return with_unit(seconds, unit); }
};

std::string taxes_text(const layer_figures& layer, const tax_verdict& verdict, bool one_run) {
  if (one_run)
    return "The effect of chance on a single run is unknown, so no tax can be told from chance; "
           "--repeat 20 tells. ";
  if (verdict.fusing == gain::none && verdict.tells_taxes)
    return "Where E1 and E4 cannot be told apart no tax is named. ";
  if (verdict.largest == nullptr)
    return "None of the three taxes is larger than the uncertainty of this measurement. ";
  const tax_part& largest = *verdict.largest;
  const double value = layer.parts.*largest.value;
  const std::string amount =
      fmt::format("{}, {:.0f} % of E0", layer.time(value), 100 * value / layer.parts.total());
  if (verdict.rival == nullptr && largest.value == &tax_breakdown::joint)
    return fmt::format("Taxes that are not separable here are together {}. ", amount);
  if (verdict.rival == nullptr)
    return fmt::format("The largest tax is the {}: {}. ", largest.title, amount);
  const tax_part& rival = *verdict.rival;
  return fmt::format("The {} is {}; whether the {}, {} +- {}, is larger cannot be told. ",
                     largest.title, amount, rival.title, layer.time(layer.parts.*rival.value),
                     layer.time(layer.chance.*rival.value));
}

std::string stand_in_text(const layer_figures& layer) {
  const double cost = -layer.parts.stand_in;
  if (!(cost > 0) || is_doubtful(cost, layer.chance.stand_in)) return "";
  return fmt::format(
      "The cost of the stand-in, which a step takes more than the one before it, is "
      "{}. ",
      layer.time(cost));
}

std::string text_of_bound(const tax_report& report, const layer_figures& layer,
                          const tax_verdict& verdict) {
  switch (verdict.bound) {
    case bound_state::absent:
      return "";
    case bound_state::holds:
      return fmt::format("E4 is {} times the bound of {}.", over_bound_text(verdict),
                         layer.time(layer.parts.bound));
    case bound_state::invalid: {
      const std::string names = invalid_bounds(report);
      return fmt::format(
          "The bound is invalid: {}E4 is below it by more than the "
          "uncertainty, so compute or transfers alone were measured too slow.",
          names.empty() || report.one_operator ? "" : "in " + names + " ");
    }
    default:
      return bound_text(verdict);
  }
}

}  // namespace

std::string finding(const tax_report& report) {
  layer_figures layer{layer_total(report), layer_uncertainty(report), {}};
  layer.unit = unit_for(layer.parts.total());
  const tax_verdict verdict = verdict_of(report);
  const std::string left_out = coverage(report);
  std::string text = fmt::format(
      "{}{}{} takes {} in bulk-synchronous form in a graph (E1; {} launched one by one, E0) and {} "
      "with the best fused patterns (E4)",
      report.one_operator ? report.model : "An average layer", left_out,
      left_out.empty() ? "" : ",", layer.time(layer.parts.total() - layer.parts.launch),
      layer.time(layer.parts.total()), layer.time(layer.parts.bound + layer.parts.remainder));
  const bool told = verdict.fusing != gain::unknown;
  const bool ratio = verdict.fusing == gain::faster;
  text += told ? (ratio ? ", " : ": ") + gain_text(verdict) + ". " : std::string(". ");
  text += taxes_text(layer, verdict, report.repeats < 2) + stand_in_text(layer);
  if (report.tensor_parallel == 1)
    text += "A single rank waits for no peer and sends nothing: it has no bulk-synchronous tax. ";
  text += text_of_bound(report, layer, verdict);
  if (text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace untax
