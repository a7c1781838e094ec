#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <untax/flow/fault_tap.hpp>

#include "engines/schedule/plan.hpp"

namespace untax::schedule {

/// Calls `visit(position, step)` for every step of every worker of one rank in one epoch, in
/// program order.
template <class Visit>
void each_step_of(const rank_plan& plan, std::uint64_t epoch, Visit&& visit) {
  for (const auto& stage : plan.stages()) {
    for (const worker_name who : stage) {
      step_position at{plan.rank(), who, epoch, 0};
      for (const step& s : plan.steps(who, epoch)) {
        visit(at, s);
        ++at.index;
      }
    }
  }
}

/// As above, for all epochs, one after the other.
template <class Visit>
void each_step(const rank_plan& plan, Visit&& visit) {
  for (std::uint64_t epoch = 1; epoch <= plan.epochs(); ++epoch) each_step_of(plan, epoch, visit);
}

/// The room that a verb of a step uses.
[[nodiscard]] constexpr room step::*room_of(channel_verb verb) noexcept {
  constexpr room step::*rooms[] = {&step::reserve, &step::acquire, &step::publish, &step::retire};
  return rooms[static_cast<std::size_t>(verb)];
}

[[nodiscard]] constexpr const char* name_of(channel_verb verb) noexcept {
  constexpr const char* names[] = {"reserve", "acquire", "publish", "retire"};
  return names[static_cast<std::size_t>(verb)];
}

/// Calls `visit(verb, room)` for the verbs of a step, in the order in which they are carried out.
template <class Visit>
void each_verb(const step& s, Visit&& visit) {
  for (const auto verb : {channel_verb::reserve, channel_verb::acquire, channel_verb::publish,
                          channel_verb::retire}) {
    if (const room& r = s.*room_of(verb); r.named()) visit(verb, r);
  }
}

/// Whether a verb of a step orders accesses. A signal that does not is still sent and waited for.
using ordering_filter = std::function<bool(const step_position&, const step&, channel_verb)>;

/// A rectangle that a step reads or writes.
struct access {
  place at;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool writes = false;
};

/// Calls `visit(access)` for each rectangle that a step reads, then for each that it writes.
template <class Visit>
void each_access(const step& s, Visit&& visit) {
  switch (s.what) {
    case action::none:
      return;
    case action::copy:
      visit(access{s.from, s.rows, s.cols, false});
      visit(access{s.to, s.rows, s.cols, true});
      return;
    case action::multiply:
      visit(access{s.from, s.rows, s.depth, false});
      visit(access{s.weights, s.cols, s.depth, false});
      // Engines may keep the running sum in the destination, so every step of a chain writes there.
      visit(access{s.to, s.rows, s.cols, true});
      return;
    case action::add:
      visit(access{s.from, s.rows, s.cols, false});
      return;
    case action::store:
      visit(access{s.from, s.rows, s.cols, false});
      visit(access{s.to, s.rows, s.cols, true});
      return;
    case action::reduce:
      for (std::int64_t i = 0; i < s.depth; ++i) visit(access{addend(s, i), s.rows, s.cols, false});
      for (int i = 0; i < s.depth; ++i) {
        if (s.everywhere || i == s.to.rank) visit(access{target(s, i), s.rows, s.cols, true});
      }
      return;
    case action::normalise:
      visit(access{s.from, s.rows, s.cols, false});
      for (int i = 0; i < s.depth; ++i) {
        if (s.everywhere || i == s.to.rank) visit(access{target(s, i), s.rows, 2 * s.cols, true});
      }
      return;
    case action::attend:
      visit(access{s.from, s.rows, s.cols, false});
      visit(access{s.weights, 1, 1, false});
      visit(access{s.to, s.rows, s.cols + attention_statistics, true});
      return;
    case action::merge:
      visit(access{s.from, s.rows * s.depth, s.cols + attention_statistics, false});
      visit(access{s.to, s.rows, s.to.of == operand::c ? s.cols : s.cols + attention_statistics,
                   true});
      return;
  }
}

/// Whether an operand is private to the worker.
[[nodiscard]] constexpr bool is_private(operand role) noexcept {
  return role == operand::product || role == operand::sum || role == operand::panel;
}

}  // namespace untax::schedule
