#include "engines/schedule/execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace untax::schedule {
namespace {

void join(vector_clock& into, const vector_clock& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

/// A rank without workers has one lane, for its caller.
std::size_t lane_count(const rank_plan& plan) {
  return static_cast<std::size_t>(std::max(plan.lanes(), 1));
}

}  // namespace

execution::execution(std::span<const rank_plan> plans, const signal_table& signals,
                     problem_list& problems, ordering_filter orders)
    : plans_(plans),
      signals_(&signals),
      problems_(&problems),
      orders_(std::move(orders)),
      memory_(plans, problems),
      ranks_(plans.size()) {
  int lanes = 0;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    counters_.emplace_back(static_cast<std::size_t>(plans[rank].counters()));
    ranks_[rank].first_lane = lanes;
    lanes += static_cast<int>(lane_count(plans[rank]));
  }
  nothing_.assign(static_cast<std::size_t>(lanes), 0);
  lanes_.assign(static_cast<std::size_t>(lanes),
                {.now = vector_clock(static_cast<std::size_t>(lanes), 0)});
}

void execution::run() {
  const int world = static_cast<int>(plans_.size());
  for (int rank = 0; rank < world; ++rank) {
    callers_turn(rank, 0);
    start_stage(rank);
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < world; ++rank) {
      while (advance(rank)) moved = true;
    }
  }
  const bool ended =
      std::all_of(ranks_.begin(), ranks_.end(), [](const rank_state& r) { return r.ended; });
  if (!ended) report_deadlock();
}

bool execution::reached(const need& n) const {
  const counter& c = counters_[static_cast<std::size_t>(n.rank)][static_cast<std::size_t>(n.index)];
  return !c.values.empty() && c.values.back() >= n.value;
}

/// Advances every lane of a rank as far as possible. False when no lane moved.
bool execution::advance(int rank) {
  rank_state& r = ranks_[static_cast<std::size_t>(rank)];
  if (r.ended) return false;
  const auto& workers = plans_[static_cast<std::size_t>(rank)].stages()[r.stage];
  bool moved = false;
  bool busy = false;
  for (int i = 0; i < static_cast<int>(workers.size()); ++i) {
    while (advance_lane(rank, i)) moved = true;
    const int number = r.first_lane + i;
    busy = busy || lanes_[static_cast<std::size_t>(number)].busy;
  }
  if (busy) return moved;
  end_stage(rank);
  return true;
}

bool execution::advance_lane(int rank, int index) {
  const int lane_index = ranks_[static_cast<std::size_t>(rank)].first_lane + index;
  lane& l = lanes_[static_cast<std::size_t>(lane_index)];
  if (!l.busy) return false;
  const step_position at = position(rank, index);
  const auto& steps = plans_[static_cast<std::size_t>(rank)].steps(at.who, at.epoch);
  if (l.next == static_cast<int>(steps.size())) {
    l.busy = false;
    return false;
  }
  const step& s = steps[static_cast<std::size_t>(l.next)];
  bool ready = true;
  each_need(s, [&](channel_verb, const need& n) { ready = ready && reached(n); });
  if (!ready) return false;
  carry_out(at, s, l, lane_index);
  ++l.next;
  return true;
}

void execution::carry_out(const step_position& at, const step& s, lane& l, int lane_index) {
  ++steps_;
  each_need(s, [&](channel_verb verb, const need& n) {
    ++waits_;
    if (orders(at, s, verb)) learn(n, l.now);
  });
  l.now[static_cast<std::size_t>(lane_index)] = ++l.time;
  memory_.carry_out(at, lane_index, l.time, l.now);
  if (s.publish.named()) {
    raise({s.publish.consumer, s.publish.ready, s.publish.use}, at, lane_index,
          orders(at, s, channel_verb::publish));
  }
  if (s.retire.named() && s.retire.free >= 0) {
    raise({s.retire.producer, s.retire.free + s.reader, s.retire.use}, at, lane_index,
          orders(at, s, channel_verb::retire));
  }
}

bool execution::orders(const step_position& at, const step& s, channel_verb verb) const {
  return !orders_ || orders_(at, s, verb);
}

/// Joins the clock that the writer of a counter had when it raised the counter to the needed value.
void execution::learn(const need& n, vector_clock& now) const {
  const counter& c = counters_[static_cast<std::size_t>(n.rank)][static_cast<std::size_t>(n.index)];
  const auto first = std::lower_bound(c.values.begin(), c.values.end(), n.value);
  join(now, c.clocks[static_cast<std::size_t>(first - c.values.begin())]);
}

void execution::raise(const need& to, const step_position& at, int lane_index, bool teaches) {
  counter& c = counters_[static_cast<std::size_t>(to.rank)][static_cast<std::size_t>(to.index)];
  const lane& l = lanes_[static_cast<std::size_t>(lane_index)];
  // Each epoch may have a writer of its own. A later one must not overtake an earlier one, in
  // whatever order this execution happens to run them.
  const bool falls = !c.values.empty() && c.values.back() > to.value;
  if (falls || !c.raised.before(l.now)) report_overtaking(to, at);
  c.values.push_back(falls ? c.values.back() : to.value);
  c.clocks.push_back(teaches ? l.now : nothing_);
  if (falls) return;
  c.raised = {.lane = lane_index, .time = l.time};
  c.raised_by = at;
}

/// Reports that the raise at hand and the last one of the counter may come in the wrong order.
void execution::report_overtaking(const need& to, const step_position& at) {
  const counter& c =
      counters_[static_cast<std::size_t>(to.rank)][static_cast<std::size_t>(to.index)];
  struct one_raise {
    std::uint64_t value;
    const step_position* by;
  };
  one_raise lower{c.values.back(), &c.raised_by};
  one_raise higher{to.value, &at};
  if (lower.value > higher.value) std::swap(lower, higher);
  const auto who = [&](const one_raise& r) {
    return describe(plans_[static_cast<std::size_t>(r.by->rank)], *r.by);
  };
  problems_->add(fmt::format(
      "counter {} of rank {} may be raised to {} before it is raised to {}: {} has to happen "
      "before {}",
      to.index, to.rank, higher.value, lower.value, who(lower), who(higher)));
}

void execution::end_stage(int rank) {
  rank_state& r = ranks_[static_cast<std::size_t>(rank)];
  const rank_plan& plan = plans_[static_cast<std::size_t>(rank)];
  const auto lanes = lanes_of(rank);
  for (const lane& l : lanes) join(lanes.front().now, l.now);
  if (++r.stage == plan.stages().size()) {
    r.stage = 0;
    callers_turn(rank, r.epoch);
    r.ended = ++r.epoch > plan.epochs();
  }
  if (!r.ended) start_stage(rank);
}

/// All lanes of a stage begin with the clock of the first lane.
void execution::start_stage(int rank) {
  rank_state& r = ranks_[static_cast<std::size_t>(rank)];
  const auto& stages = plans_[static_cast<std::size_t>(rank)].stages();
  if (stages.empty()) {
    r.ended = true;
    return;
  }
  const auto lanes = lanes_of(rank);
  for (lane& l : lanes) l.now = lanes.front().now;
  for (lane& l : lanes.first(stages[r.stage].size())) {
    l.next = 0;
    l.busy = true;
  }
}

/// The caller runs in the first lane, while no worker of the rank runs.
void execution::callers_turn(int rank, std::uint64_t ended) {
  const int lane_index = ranks_[static_cast<std::size_t>(rank)].first_lane;
  lane& l = lanes_[static_cast<std::size_t>(lane_index)];
  l.now[static_cast<std::size_t>(lane_index)] = ++l.time;
  memory_.callers_turn(rank, ended, lane_index, l.time, l.now);
}

std::span<execution::lane> execution::lanes_of(int rank) {
  const auto first = static_cast<std::size_t>(ranks_[static_cast<std::size_t>(rank)].first_lane);
  return std::span(lanes_).subspan(first, lane_count(plans_[static_cast<std::size_t>(rank)]));
}

step_position execution::position(int rank, int index) const {
  const rank_state& r = ranks_[static_cast<std::size_t>(rank)];
  const worker_name who =
      plans_[static_cast<std::size_t>(rank)].stages()[r.stage][static_cast<std::size_t>(index)];
  const int number = r.first_lane + index;
  return {rank, who, r.epoch, lanes_[static_cast<std::size_t>(number)].next};
}

const step& execution::step_at(const step_position& at) const {
  return plans_[static_cast<std::size_t>(at.rank)].steps(
      at.who, at.epoch)[static_cast<std::size_t>(at.index)];
}

}  // namespace untax::schedule
