#include "engines/model/mutation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engines/schedule/check.hpp"
#include "engines/schedule/walk.hpp"

namespace untax::model {
namespace {

using schedule::room_of;

bool does_something(channel_verb verb, const room& r) {
  if (verb == channel_verb::reserve) return r.free >= 0 && r.needed_free() > 0;
  return verb != channel_verb::retire || r.free >= 0;
}

}  // namespace

bool mutation::strikes(int kernel_index, const step& s, channel_verb v) const noexcept {
  const room& r = s.*room_of(v);
  return v == verb && kernel_index == kernel && s.what == what &&
         (r.producer == r.consumer) == local;
}

std::string describe(const mutation& m, const scenario& s) {
  const auto& kernels = s.plans.front().kernels();
  return fmt::format("{} {} of steps that {} in kernel {} ({}), room {}",
                     m.how == change::drop ? "drop" : "weaken", schedule::name_of(m.verb),
                     m.what == action::none ? "only signal" : schedule::name_of(m.what), m.kernel,
                     kernels[static_cast<std::size_t>(m.kernel)].name,
                     m.local ? "within the rank" : "between ranks");
}

std::vector<mutation> mutants_of(const scenario& s) {
  std::vector<mutation> mutations;
  for (const auto& plan : s.plans) {
    schedule::each_step(plan, [&](const schedule::step_position& at, const step& st) {
      schedule::each_verb(st, [&](channel_verb verb, const room& r) {
        if (!does_something(verb, r)) return;
        for (const change how : {change::drop, change::weaken}) {
          const mutation m{how, verb, at.who.kernel, st.what, r.producer == r.consumer};
          if (std::find(mutations.begin(), mutations.end(), m) == mutations.end())
            mutations.push_back(m);
        }
      });
    });
  }
  return mutations;
}

std::vector<schedule::rank_plan> mutated_plans(const scenario& s, const mutation& m) {
  auto plans = s.plans;
  if (m.how != change::drop) return plans;
  for (auto& plan : plans) {
    for (std::uint64_t epoch = 1; epoch <= plan.epochs(); ++epoch) {
      for (const auto& stage : plan.stages()) {
        for (const auto who : stage) {
          for (step& st : plan.steps(who, epoch)) {
            room& r = st.*room_of(m.verb);
            if (r.named() && m.strikes(who.kernel, st, m.verb)) r = room{};
          }
        }
      }
    }
  }
  return plans;
}

bool provably_harmless(const scenario& s, const mutation& m) {
  const auto plans = mutated_plans(s, m);
  const auto orders = [&](const schedule::step_position& at, const step& st, channel_verb verb) {
    return m.how == change::drop || !m.strikes(at.who.kernel, st, verb);
  };
  return schedule::check_schedule(plans, orders).ok();
}

}  // namespace untax::model
