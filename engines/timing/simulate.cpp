#include "engines/timing/simulate.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::timing {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// A number in [0, 1) that depends on seed and rank only (splitmix64).
double random_of(std::uint64_t seed, int rank) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(rank) + 1;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((x ^ (x >> 31U)) >> 11U) * 0x1.0p-53;
}

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

/// A counter: what it has reached, and who waits for it.
struct counter {
  std::uint64_t value = 0;
  std::uint32_t waiters = none;
};

/// A worker that waits for a value of a counter, and the next one that does.
struct waiter {
  std::uint64_t value = 0;
  std::uint32_t worker = none;
  std::uint32_t next = none;
};

struct in_flight {
  std::size_t place;  // of the counter
  std::uint64_t value;
  double sent;
  std::uint32_t cause;
};

/// Something that was done, and what it came after: the path is followed backwards through these.
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
  bool acts = false;    // woken, and about to act
  double since = 0;     // when its wait began
  double ended = -1;
  int sent_to = -1;     // the last peer that it sent to
  double landed = 0;    // when that has all arrived
  double all_landed = 0;  // when all that it sent has
  std::uint32_t last = none;  // its latest node
};

struct rank_state {
  int stage = -1;
  int running = 0;
  double began = 0;  // the stage
  std::uint32_t last = none;
  bool ended = false;
  double end = 0;
};

class simulator {
 public:
  simulator(const workload& work, const machine& m, const simulation_options& options)
      : work_(work),
        n_(m.numbers),
        options_(options),
        net_(m, work.ranks()),
        workers_(work.workers().size()),
        ranks_(static_cast<std::size_t>(work.ranks())),
        of_rank_(ranks_.size()) {
    made_.workers.resize(workers_.size());
    count_counters();
    if (options.keeps_spans) net_.remember();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const timed_worker& w = work.workers()[i];
      of_rank_[static_cast<std::size_t>(w.rank)].push_back(static_cast<std::uint32_t>(i));
    }
  }

  simulation run() {
    double first = std::numeric_limits<double>::max();
    std::vector<double> begins;
    for (int rank = 0; rank < work_.ranks(); ++rank) {
      begins.push_back(n_.jitter * random_of(options_.seed, rank));
      first = std::min(first, begins.back());
    }
    for (int rank = 0; rank < work_.ranks(); ++rank) {
      const double at = begins[static_cast<std::size_t>(rank)] - first;
      ranks_[static_cast<std::size_t>(rank)].last =
          remember(0, at, none, none, &time_parts::late_peer);
      push(at, event_kind::stage, static_cast<std::uint32_t>(rank));
    }
    while (!queue_.empty()) {
      const event now = queue_.top();
      queue_.pop();
      switch (now.kind) {
        case event_kind::stage:
          begin_stage(static_cast<int>(now.number), now.at);
          break;
        case event_kind::worker:
          advance(now.number, now.at);
          break;
        case event_kind::arrival:
          arrive(now.number, now.at);
          break;
      }
    }
    finish();
    return std::move(made_);
  }

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
    made_.workers[number].*part += end - begin;
    if (options_.keeps_spans && end > begin) made_.spans.push_back({number, begin, end, part});
  }

  /// Starts the kernels of the next stage of a rank; it has ended if there is none.
  void begin_stage(int rank, double now) {
    rank_state& r = ranks_[static_cast<std::size_t>(rank)];
    int stage = std::numeric_limits<int>::max();
    for (const timed_kernel& k : kernels_of(rank)) {
      if (k.stage > r.stage) stage = std::min(stage, k.stage);
    }
    if (stage == std::numeric_limits<int>::max()) {
      r.ended = true;
      r.end = now;
      return;
    }
    r.stage = stage;
    r.began = now;
    r.running = 0;
    for (const std::uint32_t number : of_rank_[static_cast<std::size_t>(rank)]) {
      const timed_kernel& k = kernel_of(number);
      if (k.stage != stage) continue;
      ++r.running;
      spend(number, now, now + k.launch, &time_parts::launch);
      workers_[number].last =
          remember(now, now + k.launch, r.last, number, &time_parts::launch);
      push(now + k.launch, event_kind::worker, number);
    }
    // A stage without workers ends at once.
    if (r.running == 0) push(now, event_kind::stage, static_cast<std::uint32_t>(rank));
  }

  void advance(std::uint32_t number, double now) {
    const timed_worker& w = work_.workers()[number];
    worker_state& s = workers_[number];
    if (s.next == w.count) {
      end_worker(number, now);
      return;
    }
    const activity& a = work_.activities()[w.first + s.next];
    for (std::uint32_t i = s.acts ? a.waits : 0; i < a.waits; ++i) {
      const signal& need = work_.waits()[a.first_wait + i];
      counter& c = counters_[place_of(need)];
      if (c.value >= need.value) continue;
      if (!s.waits) {
        s.waits = true;
        s.since = now;
      }
      enlist(c, need.value, number);
      return;
    }
    s.acts = false;
    s.waits = false;
    act(number, a, now);
  }

  void act(std::uint32_t number, const activity& a, double now) {
    worker_state& s = workers_[number];
    ++s.next;
    ++made_.activities;
    double at = now;
    if (a.busy > 0) {
      spend(number, at, at + a.busy, &time_parts::compute);
      s.last = remember(at, at + a.busy, s.last, number, &time_parts::compute);
      at += a.busy;
    }
    double seen = at;
    if (a.from >= 0 && a.bytes > 0) {
      const int rank = work_.workers()[number].rank;
      const double begin = at + a.begin_after;
      const passage p = net_.send(a.from, a.to, a.bytes, a.pace, begin, a.to == rank);
      // Who fetches, has it when it has come.
      const bool fetches = a.from != rank;
      const double until = a.detached ? begin : fetches || a.awaits ? p.arrived : p.left;
      spend(number, at, until, &time_parts::move);
      s.last = remember(at, until, s.last, number, &time_parts::move);
      at = until;
      seen = std::max(p.arrived, at);
      s.sent_to = a.to;
      s.landed = p.arrived;
      s.all_landed = std::max(s.all_landed, p.arrived);
    }
    for (std::uint32_t i = 0; i < a.raises; ++i)
      send(number, work_.raises()[a.first_raise + i], a, at, seen);
    push(at, event_kind::worker, number);
  }

  void send(std::uint32_t number, const signal& what, const activity& a, double at, double seen) {
    const int rank = work_.workers()[number].rank;
    const worker_state& s = workers_[number];
    double when = seen;
    if (what.rank != rank) {
      // A signal takes its own flight, and comes behind the data: those that carry it, or, released,
      // all that the worker has sent.
      when = std::max(seen, at + net_.flight(rank, what.rank));
      if (a.way == signal_way::inside) {
        if (s.sent_to == what.rank) when = std::max(a.bytes > 0 ? seen : at, s.landed);
      } else {
        when = std::max(when, s.all_landed) + (a.way == signal_way::released ? n_.release : 0);
      }
    }
    const std::uint32_t place = keep(
        flying_, free_, in_flight{place_of(what), what.value, at, workers_[number].last});
    push(when, event_kind::arrival, place);
  }

  void arrive(std::uint32_t place, double now) {
    const in_flight one = flying_[place];
    free_.push_back(place);
    counter& c = counters_[one.place];
    if (one.value <= c.value) return;
    c.value = one.value;
    std::uint32_t next = c.waiters;
    c.waiters = none;
    while (next != none) {
      const waiter w = waiters_[next];
      free_waiters_.push_back(next);
      next = w.next;
      if (w.value > one.value) {
        enlist(counters_[one.place], w.value, w.worker);
      } else {
        wake(w.worker, one, now);
      }
    }
  }
  void enlist(counter& c, std::uint64_t value, std::uint32_t number) {
    const waiter one{value, number, c.waiters};
    c.waiters = keep(waiters_, free_waiters_, one);
  }
  /// Puts something into a pool; returns its place.
  template <class T>
  static std::uint32_t keep(std::vector<T>& pool, std::vector<std::uint32_t>& free, const T& one) {
    if (free.empty()) {
      pool.push_back(one);
      return static_cast<std::uint32_t>(pool.size()) - 1;
    }
    const std::uint32_t place = free.back();
    free.pop_back();
    pool[place] = one;
    return place;
  }

  /// A worker whose signal has come looks on, unless it waits for another one, too.
  void wake(std::uint32_t number, const in_flight& one, double now) {
    worker_state& s = workers_[number];
    const timed_worker& w = work_.workers()[number];
    const activity& a = work_.activities()[w.first + s.next];
    for (std::uint32_t i = 0; i < a.waits; ++i) {
      const signal& need = work_.waits()[a.first_wait + i];
      counter& c = counters_[place_of(need)];
      if (c.value >= need.value) continue;
      enlist(c, need.value, number);
      return;
    }
    const double on = now + n_.look;
    const double late = std::clamp(one.sent, s.since, on);
    spend(number, s.since, late, &time_parts::late_peer);
    spend(number, late, on, &time_parts::in_flight);
    s.last = remember(late, on, one.cause, number, &time_parts::in_flight);
    s.acts = true;
    push(on, event_kind::worker, number);
  }

  void end_worker(std::uint32_t number, double now) {
    worker_state& s = workers_[number];
    s.ended = now;
    const int rank = work_.workers()[number].rank;
    rank_state& r = ranks_[static_cast<std::size_t>(rank)];
    if (--r.running > 0) return;
    r.last = s.last;
    for (const std::uint32_t other : of_rank_[static_cast<std::size_t>(rank)]) {
      if (kernel_of(other).stage == r.stage)
        spend(other, workers_[other].ended, now, &time_parts::tail);
    }
    begin_stage(rank, now);
  }

  void finish() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank].ended) report_stuck();
      made_.rank_seconds.push_back(ranks_[rank].end);
      made_.seconds = std::max(made_.seconds, ranks_[rank].end);
      time_parts all;
      for (const std::uint32_t number : of_rank_[rank]) all.add(made_.workers[number]);
      const double many = std::max<double>(1, static_cast<double>(of_rank_[rank].size()));
      for (const auto part : {&time_parts::launch, &time_parts::compute, &time_parts::move,
                              &time_parts::late_peer, &time_parts::in_flight, &time_parts::tail})
        all.*part /= many;
      made_.ranks.push_back(all);
    }
    made_.lanes = net_.lanes();
    made_.bookings = net_.bookings();
    if (options_.keeps_path) follow();
  }

  void follow() {
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

  [[noreturn]] void report_stuck() const {
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
                                "rank {}, needs {}, has {}; nobody signals it",
                                w.rank, kernel_of(static_cast<std::uint32_t>(i)).name, s.next,
                                need.counter, need.rank, need.value, has));
      }
    }
    throw error(errc::internal, "timing: a rank did not end");
  }

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
    std::size_t all = 0;
    for (const std::size_t own : counts) {
      first_counter_.push_back(all);
      all += own;
    }
    counters_.resize(all);
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
  std::vector<std::vector<std::uint32_t>> of_rank_;  // workers
  std::vector<node> nodes_;
  simulation made_;
};

}  // namespace

void time_parts::add(const time_parts& other) noexcept {
  launch += other.launch;
  compute += other.compute;
  move += other.move;
  late_peer += other.late_peer;
  in_flight += other.in_flight;
  tail += other.tail;
}

time_parts simulation::path_parts() const {
  time_parts all;
  for (const path_piece& piece : path) all.*piece.part += piece.end - piece.begin;
  return all;
}

simulation simulate(const workload& work, const machine& m, const simulation_options& options) {
  return simulator(work, m, options).run();
}

}  // namespace untax::timing
