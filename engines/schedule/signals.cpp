#include "engines/schedule/signals.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace untax::schedule {
namespace {

bool same_worker(const step_position& x, const step_position& y) {
  return x.rank == y.rank && x.who.kernel == y.who.kernel && x.who.worker == y.who.worker;
}

}  // namespace

signal_table::signal_table(std::span<const rank_plan> plans, problem_list& problems)
    : plans_(plans), problems_(&problems) {
  for (const rank_plan& plan : plans)
    raises_.emplace_back(static_cast<std::size_t>(plan.counters()));
  const auto note = [&](const step_position& at, const step& s) {
    each_verb(s, [&](channel_verb verb, const room& r) {
      if (!check_room(at, verb, r, s.reader)) return;
      if (verb == channel_verb::publish) record(at, verb, r.consumer, r.ready, r.use);
      if (verb == channel_verb::retire && r.free >= 0)
        record(at, verb, r.producer, r.free + s.reader, r.use);
    });
  };
  // Epoch by epoch: in the order of values, even if a counter has a writer for each epoch.
  for (std::uint64_t epoch = 1; !plans.empty() && epoch <= plans.front().epochs(); ++epoch) {
    for (const rank_plan& plan : plans) each_step_of(plan, epoch, note);
  }
  if (!problems.empty()) return;
  for (const rank_plan& plan : plans) {
    each_step(plan, [&](const step_position& at, const step& s) {
      each_verb(s, [&](channel_verb verb, const room& r) { check_wait(at, verb, r); });
    });
  }
}

const signal_table::raise* signal_table::first_reaching(int rank, int index,
                                                        std::uint64_t value) const {
  const auto& raises = raises_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
  const auto match =
      std::lower_bound(raises.begin(), raises.end(), value,
                       [](const raise& r, std::uint64_t wanted) { return r.value < wanted; });
  return match == raises.end() ? nullptr : &*match;
}

bool signal_table::check_room(const step_position& at, channel_verb verb, const room& r,
                              int reader) {
  const int world = static_cast<int>(plans_.size());
  const auto wrong = [&](const std::string& why) {
    problems_->add(fmt::format("{}: {} of {}: {}", where(at), name_of(verb), describe(r), why));
    return false;
  };
  if (r.producer < 0 || r.producer >= world || r.consumer < 0 || r.consumer >= world) {
    return wrong(fmt::format("there are only ranks 0..{}", world - 1));
  }
  const bool producing = verb == channel_verb::reserve || verb == channel_verb::publish;
  if (at.rank != (producing ? r.producer : r.consumer)) {
    return wrong(fmt::format("only its {} may do that", producing ? "producer" : "consumer"));
  }
  if (r.use == 0) return wrong("uses are counted from 1");
  const int ready_limit = plans_[static_cast<std::size_t>(r.consumer)].counters();
  if (r.ready < 0 || r.ready >= ready_limit) {
    return wrong(
        fmt::format("ready counter {} is not below counters() = {}", r.ready, ready_limit));
  }
  if (r.free < 0) return true;
  const int free_limit = plans_[static_cast<std::size_t>(r.producer)].counters();
  if (r.readers < 1 || r.free + r.readers > free_limit) {
    return wrong(fmt::format(
        "free counters {} and following for {} readers are not all below counters() = {}", r.free,
        r.readers, free_limit));
  }
  if (verb == channel_verb::retire && (reader < 0 || reader >= r.readers)) {
    return wrong(fmt::format("reader {} is not one of its {} readers", reader, r.readers));
  }
  return true;
}

void signal_table::record(const step_position& at, channel_verb verb, int rank, int index,
                          std::uint64_t value) {
  auto& raises = raises_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
  const auto wrong = [&](const char* why) {
    problems_->add(fmt::format("counter {} of rank {} {}: {} raises it to {}, {} raised it to {}",
                               index, rank, why, where(at), value, where(raises.back().by),
                               raises.back().value));
  };
  if (!raises.empty()) {
    const bool may_change = !plans_[static_cast<std::size_t>(at.rank)].epochs_are_alike() &&
                            raises.back().by.epoch != at.epoch;
    if (!may_change && !same_worker(raises.back().by, at)) return wrong("has two writers");
    if (raises.back().value == value) return wrong("is raised twice to the same value");
    if (raises.back().value > value) return wrong("is lowered");
  }
  raises.push_back({value, at, verb});
}

void signal_table::check_wait(const step_position& at, channel_verb verb, const room& r) {
  if (verb == channel_verb::acquire)
    expect(at, verb, r, channel_verb::publish, r.consumer, r.ready, r.use);
  if (verb != channel_verb::reserve || r.free < 0 || r.needed_free() == 0) return;
  for (int reader = 0; reader < r.readers; ++reader) {
    expect(at, verb, r, channel_verb::retire, r.producer, r.free + reader, r.needed_free());
  }
}

void signal_table::expect(const step_position& at, channel_verb verb, const room& r,
                          channel_verb wanted, int rank, int index, std::uint64_t value) {
  const raise* result = first_reaching(rank, index, value);
  const int peer = wanted == channel_verb::publish ? r.producer : r.consumer;
  const bool right = result != nullptr && result->value == value && result->verb == wanted &&
                     result->by.rank == peer;
  if (right) return;
  const std::string instead =
      result == nullptr ? "nobody raises the counter that far"
                        : fmt::format("{} raises it to {}", where(result->by), result->value);
  problems_->add(fmt::format(
      "{}: {} of {} waits for counter {} of rank {} to reach {}, but rank {} has no {} for that: "
      "{}",
      where(at), name_of(verb), describe(r), index, rank, value, peer, name_of(wanted), instead));
}

std::string signal_table::where(const step_position& at) const {
  return describe(plans_[static_cast<std::size_t>(at.rank)], at);
}

}  // namespace untax::schedule
