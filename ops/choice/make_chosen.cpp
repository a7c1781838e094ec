#include "ops/choice/make_chosen.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "ops/choice/choose.hpp"
#include "ops/choice/prediction.hpp"
#include "ops/common/reasoned_operator.hpp"

namespace untax {
namespace {

std::string refusal_of(pattern how, const error& e) {
  return fmt::format("; {} is not possible: {}", name_of(how), e.what());
}

/// Times the likely patterns, puts them first, quickest before others, and reports their times.
void settle_by_timing(world& w, const std::string& name, choice& chosen, const operator_maker& make,
                      const timer_maker& timer) {
  const operator_timer seconds_of = timer();
  if (!seconds_of) {
    chosen.reason += "; nothing was timed, since there is no memory for it, or ranks share a GPU";
    return;
  }
  std::vector<prediction::expected> took;
  std::string refusals;
  for (const pattern how : chosen.likely) {
    std::unique_ptr<device_operator> op;
    try {
      op = make(how);
    } catch (const error& e) {
      if (e.code() != errc::unsupported && e.code() != errc::out_of_memory) throw;
      refusals += refusal_of(how, e);
    }
    // A rank may lack memory where others do not. Then no rank may run.
    w.agree(fmt::format("{}: {} to be timed (not with {}=0)", name, name_of(how),
                        variable::measure.name),
            op ? "made" : "refused");
    if (op) took.push_back({how, seconds_of(*op)});
  }
  if (took.empty()) return;
  std::ranges::stable_sort(took, {}, &prediction::expected::seconds);
  std::vector<pattern> order;
  for (const auto& one : took) order.push_back(one.how);
  append_others(order, chosen.order);
  chosen.order = std::move(order);
  chosen.reason = fmt::format("chosen by timing it here: {}{}; what was timed was {}",
                              text_of(took), refusals, chosen.reason);
}

}  // namespace

std::unique_ptr<device_operator> make_chosen(world& w, const tuned_problem& problem,
                                             std::string_view device, const operator_maker& make,
                                             const timer_maker& timer, const environment& env) {
  choice chosen = choose(problem, device, env);
  const bool timed =
      env.number_or_fallback(variable::measure, 0, 1) == 1 && chosen.likely.size() > 1;
  std::string order;
  for (const pattern how : chosen.order)
    order += (order.empty() ? "" : ", ") + std::string(name_of(how));
  w.agree(problem.operator_name + ": what automatic stands for",
          order + (timed ? fmt::format(", {} patterns timed", chosen.likely.size()) : ""));
  if (timed) settle_by_timing(w, problem.operator_name, chosen, make, timer);
  for (const pattern how : chosen.order) {
    try {
      return std::make_unique<reasoned_operator>(make(how), chosen.reason);
    } catch (const error& e) {
      if (e.code() != errc::unsupported || how == chosen.order.back()) throw;
      chosen.reason += refusal_of(how, e);
    }
  }
  throw error(errc::internal, "a choice among no patterns");
}

}  // namespace untax
