#include "engines/model/execution.hpp"

#include <fmt/format.h>

#include <untax/flow/wait.hpp>

#include "engines/model/no_timeout.hpp"
#include "engines/schedule/walk.hpp"

namespace untax::model {
namespace {

/// The value of c before a result is written.
constexpr std::uint64_t spoilt = 0xdeadULL << 48;

int slots_in(std::span<const schedule::rank_plan> plans) {
  int count = 0;
  for (const auto& plan : plans) count += plan.lanes();
  return count;
}

}  // namespace

execution::execution(const scenario& s, const std::optional<mutation>& change)
    : scenario_(&s),
      plans_(change ? mutated_plans(s, *change) : s.plans),
      memory_(plans_),
      arrivals_(static_cast<std::size_t>(slots_in(plans_))) {
  for (const auto& plan : plans_) {
    first_slot_.push_back(threads());
    for (int lane = 0; lane < plan.lanes(); ++lane) {
      slots_.push_back({&plan, lane, worker(s, plan, change, memory_), 0});
    }
  }
}

void execution::begin() {
  memory_.create();
  arrivals_.create();
  for (slot& s : slots_) {
    s.hands.start();
    s.meetings = 0;
  }
  for (const auto& plan : plans_) callers_turn(plan, 0);
}

void execution::thread(int index) {
  slot& own = slots_[static_cast<std::size_t>(index)];
  for (std::uint64_t epoch = 1; epoch <= own.plan->epochs(); ++epoch) {
    for (const auto& stage : own.plan->stages()) {
      if (own.lane < static_cast<int>(stage.size())) {
        own.hands.run(stage[static_cast<std::size_t>(own.lane)], epoch);
      }
      meet(own);
    }
    if (own.lane == 0) callers_turn(*own.plan, epoch);
    meet(own);
  }
}

void execution::end() {
  arrivals_.destroy();
  memory_.destroy();
}

void execution::meet(slot& own) {
  if (own.plan->lanes() == 1) return;
  ++own.meetings;
  const auto first =
      static_cast<std::size_t>(first_slot_[static_cast<std::size_t>(own.plan->rank())]);
  model_memory::raise_release(arrivals_[first + static_cast<std::size_t>(own.lane)], own.meetings);
  for (int lane = 0; lane < own.plan->lanes(); ++lane) {
    no_timeout guard;
    const wait_site site{"model", verb::barrier, own.plan->rank(), -1, own.meetings};
    static_cast<void>(
        wait_until<model_memory>(arrivals_[first + static_cast<std::size_t>(lane)], site, guard));
  }
}

void execution::callers_turn(const schedule::rank_plan& plan, std::uint64_t ended) {
  if (ended > 0) check_result(plan, ended);
  const auto fill = [&](operand role, auto&& value) {
    const cell_matrix& m = memory_.matrix(role, plan.rank());
    for (std::int64_t i = 0; i < m.size().rows; ++i) {
      for (std::int64_t j = 0; j < m.size().cols; ++j) m.at(i, j) = value(i, j);
    }
  };
  fill(operand::c, [](std::int64_t, std::int64_t) { return spoilt; });
  fill(operand::a,
       [&](std::int64_t i, std::int64_t j) { return scenario_->a(plan.rank(), ended + 1, i, j); });
}

void execution::check_result(const schedule::rank_plan& plan, std::uint64_t epoch) {
  const cell_matrix& c = memory_.matrix(operand::c, plan.rank());
  const extent result = plan.result_of(epoch);
  for (std::int64_t i = 0; i < c.size().rows; ++i) {
    for (std::int64_t j = 0; j < c.size().cols; ++j) {
      const bool written = i < result.rows && j < result.cols;
      const std::uint64_t wanted = written ? scenario_->expected(plan.rank(), epoch, i, j) : spoilt;
      const std::uint64_t value = c.at(i, j);
      if (value == wanted) continue;
      fail(fmt::format("after epoch {} c({}, {}) of rank {} is {} and should be {}", epoch, i, j,
                       plan.rank(), value == spoilt ? "untouched" : std::to_string(value), wanted));
    }
  }
}

std::string execution::circumstances() const {
  std::string text;
  for (const slot& s : slots_) {
    const std::string where = s.hands.whereabouts();
    if (!where.empty()) text += (text.empty() ? "  " : "\n  ") + where;
  }
  return text;
}

std::uint64_t execution::depth() const {
  std::uint64_t verbs = 0;
  for (const auto& plan : plans_) {
    schedule::each_step(plan, [&](const auto&, const step& s) {
      schedule::each_verb(s, [&](channel_verb, const room&) { ++verbs; });
    });
    verbs += 2 * plan.epochs() * plan.stages().size() * static_cast<std::uint64_t>(plan.lanes());
  }
  // A waiting thread takes two turns for each turn of another thread. Random choice needs a margin
  // on top of that.
  return 1000 + verbs * static_cast<std::uint64_t>(threads()) * 32;
}

}  // namespace untax::model
