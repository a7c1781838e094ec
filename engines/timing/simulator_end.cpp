#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/timing/simulator.hpp"

namespace untax::timing {

void simulator::finish() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].ended) report_stuck();
    made_.rank_seconds.push_back(ranks_[rank].end);
    made_.seconds = std::max(made_.seconds, ranks_[rank].end);
    time_parts parts;
    for (const std::uint32_t number : of_rank_[rank]) parts.add(made_.workers[number]);
    const double many = std::max<double>(1, static_cast<double>(of_rank_[rank].size()));
    for (const auto part : {&time_parts::launch, &time_parts::compute, &time_parts::move,
                            &time_parts::late_peer, &time_parts::in_flight, &time_parts::tail})
      parts.*part /= many;
    made_.ranks.push_back(parts);
  }
  made_.lanes = net_.lanes();
  made_.bookings = net_.bookings();
  if (options_.keeps_path) follow();
}

void simulator::follow() {
  const auto last = std::ranges::max_element(ranks_, {}, &rank_state::end);
  double until = made_.seconds;
  for (std::uint32_t at = last->last; at != none; at = nodes_[at].before) {
    const node& n = nodes_[at];
    const timed_worker* w = n.worker == none ? nullptr : &work_.workers()[n.worker];
    const int rank = w != nullptr ? w->rank : static_cast<int>(last - ranks_.begin());
    const double begin = std::min(n.begin, until);
    made_.path.push_back({rank, w != nullptr ? w->kernel : -1, begin, until, n.part});
    until = begin;
  }
}

void simulator::report_stuck() const {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const worker_state& s = workers_[i];
    const timed_worker& w = work_.workers()[i];
    if (!s.waits || s.next == w.count) continue;
    const activity& a = work_.activities()[w.first + s.next];
    for (std::uint32_t k = 0; k < a.waits; ++k) {
      const signal& need = work_.waits()[a.first_wait + k];
      const std::uint64_t has = counters_[place_of(need)].value;
      if (has >= need.value) continue;
      throw error(errc::internal,
                  fmt::format("timing: rank {}, kernel {}, activity {} waits for counter {} of "
                              "rank {}, needs {}, has {}; no worker signals it",
                              w.rank, kernel_of(static_cast<std::uint32_t>(i)).name, s.next,
                              need.counter, need.rank, need.value, has));
    }
  }
  throw error(errc::internal, "timing: a rank did not end");
}

}  // namespace untax::timing
