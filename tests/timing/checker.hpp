#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "engines/timing/simulate.hpp"

namespace timing_test {

namespace timing = untax::timing;

inline constexpr double rounding = 1e-9;  // relative

/// The lower bound of every run: the work of each worker, and the bytes of each lane.
inline double bound_of(const timing::workload& work, const timing::simulation& run) {
  double most = 0;
  for (const timing::timed_worker& w : work.workers()) {
    double busy = 0;
    for (std::size_t i = 0; i < w.count; ++i) busy += work.activities()[w.first + i].busy;
    most = std::max(most, busy);
  }
  for (const timing::lane& l : run.lanes) most = std::max(most, l.bytes / l.rate);
  return most;
}

/// Finds the faults of a simulation that kept its spans, as texts, without the code of the
/// simulator.
class checker {
 public:
  checker(const timing::workload& work, const timing::machine& m, const timing::simulation& run)
      : work_(work), m_(m), run_(run), slack_(rounding * (1e-6 + run.seconds)) {}

  std::vector<std::string> problems() {
    workers_do_one_thing();
    lanes_keep_their_rates();
    waits_come_after_signals();
    parts_add_up();
    if (run_.seconds + slack_ < bound_of(work_, run_))
      add("it takes {} and cannot take less than {}", run_.seconds, bound_of(work_, run_));
    return found_;
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    found_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void workers_do_one_thing() {
    std::map<std::size_t, std::vector<timing::work_span>> of_worker;
    for (const timing::work_span& s : run_.spans) of_worker[s.worker].push_back(s);
    for (auto& [worker, spans] : of_worker) {
      std::ranges::sort(spans, {}, &timing::work_span::begin);
      for (std::size_t i = 1; i < spans.size(); ++i) {
        if (spans[i].begin + slack_ < spans[i - 1].end)
          add("worker {} does two things at {}", worker, spans[i].begin);
      }
    }
  }

  void lanes_keep_their_rates() {
    std::map<int, std::vector<timing::booking>> of_lane;
    for (const timing::booking& b : run_.bookings) of_lane[b.lane].push_back(b);
    for (auto& [number, all] : of_lane) {
      std::ranges::sort(all, {}, &timing::booking::begin);
      const double rate = run_.lanes[static_cast<std::size_t>(number)].rate;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].begin + slack_ < all[i].asked)
          add("lane {} carries bytes at {} that are there at {}", number, all[i].begin,
              all[i].asked);
        if (all[i].bytes > rate * (all[i].end - all[i].begin) * (1 + rounding) + rate * slack_)
          add("lane {} carries {} bytes from {} to {}", number, all[i].bytes, all[i].begin,
              all[i].end);
        if (i > 0 && all[i].begin + slack_ < all[i - 1].end)
          add("lane {} carries two things at {}", number, all[i].begin);
      }
    }
  }

  /// The first moment at which an activity works, and the last one.
  void waits_come_after_signals() {
    std::map<std::tuple<std::size_t, std::size_t>, std::pair<double, double>> worked;
    for (const timing::work_span& s : run_.spans) {
      if (s.part != &timing::time_parts::compute && s.part != &timing::time_parts::move) continue;
      auto [at, fresh] = worked.try_emplace({s.worker, s.activity}, s.begin, s.end);
      at->second = {std::min(at->second.first, s.begin), std::max(at->second.second, s.end)};
    }
    std::map<std::tuple<int, int, std::uint64_t>, std::pair<double, int>> raised;
    each([&](std::size_t worker, std::size_t i, const timing::activity& a) {
      const auto match = worked.find({worker, i});
      for (std::uint32_t k = 0; k < a.raises; ++k) {
        const timing::signal& s = work_.raises()[a.first_raise + k];
        const double end = match == worked.end() ? 0 : match->second.second;
        raised[{s.rank, s.counter, s.value}] = {end, work_.workers()[worker].rank};
      }
    });
    each([&](std::size_t worker, std::size_t i, const timing::activity& a) {
      const auto match = worked.find({worker, i});
      if (match == worked.end()) return;
      for (std::uint32_t k = 0; k < a.waits; ++k) {
        const timing::signal& s = work_.waits()[a.first_wait + k];
        const auto [end, from] = raised.at({s.rank, s.counter, s.value});
        const double flight = from == s.rank ? 0 : std::min(m_.numbers.store, 1e-9);
        if (match->second.first + slack_ < end + flight)
          add("worker {} acts at {} on a signal that is sent at {}", worker, match->second.first,
              end);
      }
    });
  }

  void parts_add_up() {
    for (std::size_t i = 0; i < run_.workers.size(); ++i) {
      const timing::timed_worker& w = work_.workers()[i];
      int stages = 0;
      for (const timing::timed_kernel& k : work_.kernels()) stages = std::max(stages, k.stage);
      if (stages > 0) return;
      const double end = run_.rank_seconds[static_cast<std::size_t>(w.rank)];
      const double total = run_.workers[i].total();
      if (total > end + slack_ || total + m_.numbers.jitter + slack_ < end)
        add("parts of worker {} come to {} of {}", i, total, end);
    }
  }

  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t worker = 0; worker < work_.workers().size(); ++worker) {
      const timing::timed_worker& w = work_.workers()[worker];
      for (std::size_t i = 0; i < w.count; ++i) visit(worker, i, work_.activities()[w.first + i]);
    }
  }

  const timing::workload& work_;
  const timing::machine& m_;
  const timing::simulation& run_;
  double slack_;
  std::vector<std::string> found_;
};

}  // namespace timing_test
