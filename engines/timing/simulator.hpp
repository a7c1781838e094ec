#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "engines/timing/simulate.hpp"

namespace untax::timing {

inline constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

enum class event_kind : std::uint8_t { stage, worker, arrival };

struct event {
  double at;
  std::uint64_t order;
  event_kind kind;
  std::uint32_t number;  // of a rank, a worker, or a signal on its way
  bool operator>(const event& other) const {
    return std::tie(at, order) > std::tie(other.at, other.order);
  }
};

/// A counter: its value, and the first of the workers that wait for it.
struct counter {
  std::uint64_t value = 0;
  std::uint32_t waiters = none;
};

/// A worker that waits for a value of a counter. `next` is the counter's next waiter.
struct waiter {
  std::uint64_t value = 0;
  std::uint32_t worker = none;
  std::uint32_t next = none;
};

struct in_flight {
  std::size_t place;  // index of the counter
  std::uint64_t value;
  double sent;
  std::uint32_t cause;
};

/// Finished work, and the event that it followed. The critical path is traced backwards through
/// nodes.
struct node {
  double begin;
  double end;
  std::uint32_t before;
  std::uint32_t worker;
  double time_parts::*part;
};

struct worker_state {
  std::size_t next = 0;
  bool waits = false;
  bool acts = false;  // woken, and about to act
  double since = 0;   // when its wait began
  double ended = -1;
  int sent_to = -1;           // the last peer that the worker sent to
  double landed = 0;          // when the data for that peer have arrived completely
  double all_landed = 0;      // when all data that the worker has sent have arrived
  double receipt = 0;         // when all data are acknowledged
  std::uint32_t last = none;  // its latest node
};

struct rank_state {
  int stage = -1;
  int running = 0;
  double began = 0;  // start time of the stage
  std::uint32_t last = none;
  bool ended = false;
  double end = 0;
};

/// The implementation of `simulate`: the state of all workers and ranks, and the events to come.
class simulator {
 public:
  simulator(const workload& work, const machine& m, const simulation_options& options)
      : work_(work),
        n_(m.numbers),
        options_(options),
        net_(m, work.ranks()),
        workers_(work.workers().size()),
        ranks_(static_cast<std::size_t>(work.ranks())),
        of_rank_(ranks_.size()),
        turns_(work.kernels().size()) {
    made_.workers.resize(workers_.size());
    count_counters();
    if (options.keeps_spans) net_.remember();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const timed_worker& w = work.workers()[i];
      of_rank_[static_cast<std::size_t>(w.rank)].push_back(static_cast<std::uint32_t>(i));
    }
  }

  simulation run();

 private:
  void push(double at, event_kind kind, std::uint32_t number) {
    queue_.push({at, order_++, kind, number});
  }
  std::uint32_t remember(double begin, double end, std::uint32_t before, std::uint32_t worker,
                         double time_parts::*part) {
    if (!options_.keeps_path) return none;
    nodes_.push_back({begin, end, before, worker, part});
    return static_cast<std::uint32_t>(nodes_.size()) - 1;
  }
  void spend(std::uint32_t number, double begin, double end, double time_parts::*part) {
    spend(number, begin, end, part, current_of(number));
  }
  void spend(std::uint32_t number, double begin, double end, double time_parts::*part,
             std::size_t activity) {
    made_.workers[number].*part += end - begin;
    if (options_.keeps_spans && end > begin)
      made_.spans.push_back({number, begin, end, part, activity});
  }

  /// The index of the current activity: the next one during a wait, and else the one before it.
  [[nodiscard]] std::size_t current_of(std::uint32_t number) const {
    const worker_state& s = workers_[number];
    return s.waits || s.next == 0 ? s.next : s.next - 1;
  }

  /// Starts the kernels of the next stage of a rank. The rank has ended if there is none.
  void begin_stage(int rank, double now);
  void advance(std::uint32_t number, double now);
  void act(std::uint32_t number, const activity& a, double now);
  /// The time when a worker may begin to send: if a kernel has a rate for all its workers together,
  /// they send in turn.
  double turn_of(std::uint32_t number, const activity& a, double now);
  void send(std::uint32_t number, const signal& what, const activity& a, double at, double seen);
  void arrive(std::uint32_t place, double now);
  void enlist(counter& c, std::uint64_t value, std::uint32_t number) {
    const waiter w{value, number, c.waiters};
    c.waiters = keep(waiters_, free_waiters_, w);
  }
  /// Puts a value into a pool and returns its index.
  template <class T>
  static std::uint32_t keep(std::vector<T>& pool, std::vector<std::uint32_t>& free, const T& item) {
    if (free.empty()) {
      pool.push_back(item);
      return static_cast<std::uint32_t>(pool.size()) - 1;
    }
    const std::uint32_t place = free.back();
    free.pop_back();
    pool[place] = item;
    return place;
  }

  /// Resumes a worker whose signal has arrived, unless it also waits for another one.
  void wake(std::uint32_t number, const in_flight& flight, double now);
  void end_worker(std::uint32_t number, double now);
  void finish();
  void follow();
  [[noreturn]] void report_stuck() const;

  [[nodiscard]] std::size_t place_of(const signal& s) const {
    return first_counter_[static_cast<std::size_t>(s.rank)] + static_cast<std::size_t>(s.counter);
  }
  void count_counters() {
    std::vector<std::size_t> counts(ranks_.size(), 0);
    const auto count = [&](const signal& s) {
      std::size_t& most = counts[static_cast<std::size_t>(s.rank)];
      most = std::max(most, static_cast<std::size_t>(s.counter) + 1);
    };
    std::ranges::for_each(work_.waits(), count);
    std::ranges::for_each(work_.raises(), count);
    std::size_t counter_count = 0;
    for (const std::size_t own : counts) {
      first_counter_.push_back(counter_count);
      counter_count += own;
    }
    counters_.resize(counter_count);
  }
  [[nodiscard]] const timed_kernel& kernel_of(std::uint32_t number) const {
    return work_.kernels()[static_cast<std::size_t>(work_.workers()[number].kernel)];
  }
  [[nodiscard]] std::vector<timed_kernel> kernels_of(int rank) const {
    std::vector<timed_kernel> own;
    for (const std::uint32_t number : of_rank_[static_cast<std::size_t>(rank)]) {
      if (own.empty() || own.back().stage != kernel_of(number).stage)
        own.push_back(kernel_of(number));
    }
    return own;
  }

  const workload& work_;
  const machine_numbers& n_;
  simulation_options options_;
  network net_;
  std::priority_queue<event, std::vector<event>, std::greater<>> queue_;
  std::uint64_t order_ = 0;
  std::vector<std::size_t> first_counter_;  // of each rank
  std::vector<counter> counters_;
  std::vector<waiter> waiters_;
  std::vector<std::uint32_t> free_waiters_;
  std::vector<in_flight> flying_;
  std::vector<std::uint32_t> free_;
  std::vector<worker_state> workers_;
  std::vector<rank_state> ranks_;
  std::vector<std::vector<std::uint32_t>> of_rank_;  // workers of each rank
  std::vector<double> turns_;  // of each kernel: when the next transfer may begin
  std::vector<node> nodes_;
  simulation made_;
};

}  // namespace untax::timing
