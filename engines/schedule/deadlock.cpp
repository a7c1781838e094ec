#include <fmt/format.h>

#include <algorithm>

#include "engines/schedule/execution.hpp"

// The part of `execution` that explains deadlocks.

namespace untax::schedule {

/// Follows "waits for a signal of" from the first stuck lane until a lane repeats: that is the
/// cycle.
void execution::report_deadlock() {
  std::vector<blocked> chain;
  const auto stuck =
      std::find_if(ranks_.begin(), ranks_.end(), [](const rank_state& r) { return !r.ended; });
  blocked at = first_blocked(static_cast<int>(stuck - ranks_.begin()));
  const auto seen = [&] {
    return std::find_if(chain.begin(), chain.end(),
                        [&](const blocked& b) { return b.rank == at.rank && b.index == at.index; });
  };
  while (seen() == chain.end()) {
    chain.push_back(at);
    at = culprit(missing(at));
  }
  chain.erase(chain.begin(), seen());
  std::string text = "deadlock: these wait for each other:";
  for (const blocked& b : chain) {
    const step_position where = position(b.rank, b.index);
    const step& s = step_at(where);
    const need n = missing(b);
    const bool acquires =
        s.acquire.named() && n.rank == s.acquire.consumer && n.index == s.acquire.ready;
    const signal_table::raise* signal = signals_->first_reaching(n.rank, n.index, n.value);
    text +=
        fmt::format("\n  {} cannot {} {}, which needs {}",
                    describe(plans_[static_cast<std::size_t>(b.rank)], where),
                    acquires ? "acquire" : "reserve", describe(acquires ? s.acquire : s.reserve),
                    describe(plans_[static_cast<std::size_t>(signal->by.rank)], signal->by));
  }
  problems_->add(text);
}

execution::blocked execution::first_blocked(int rank) const {
  const rank_state& r = ranks_[static_cast<std::size_t>(rank)];
  int number = r.first_lane;
  while (!lanes_[static_cast<std::size_t>(number)].busy) ++number;
  return {rank, number - r.first_lane};
}

need execution::missing(const blocked& b) const {
  need first;
  bool cyclic = false;
  each_need(step_at(position(b.rank, b.index)), [&](channel_verb, const need& n) {
    if (cyclic || reached(n)) return;
    first = n;
    cyclic = true;
  });
  return first;
}

/// The lane that holds back the signal: its writer's, if that runs already, or else a lane that
/// keeps the writer's rank from getting there. That rank has not ended: its counters never fall in
/// this execution, so it would have raised this counter far enough.
execution::blocked execution::culprit(const need& n) const {
  const step_position raiser = signals_->first_reaching(n.rank, n.index, n.value)->by;
  const rank_state& r = ranks_[static_cast<std::size_t>(raiser.rank)];
  const auto& workers = plans_[static_cast<std::size_t>(raiser.rank)].stages()[r.stage];
  for (int i = 0; raiser.epoch == r.epoch && i < static_cast<int>(workers.size()); ++i) {
    const worker_name who = workers[static_cast<std::size_t>(i)];
    if (who.kernel == raiser.who.kernel && who.worker == raiser.who.worker) return {raiser.rank, i};
  }
  return first_blocked(raiser.rank);
}

}  // namespace untax::schedule
