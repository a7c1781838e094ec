#include "engines/timing/simulate.hpp"

#include "engines/timing/simulator.hpp"

namespace untax::timing {
namespace {

/// A number in [0, 1) that depends on seed and rank only (splitmix64).
double random_of(std::uint64_t seed, int rank) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(rank) + 1;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((x ^ (x >> 31U)) >> 11U) * 0x1.0p-53;
}

}  // namespace

simulation simulator::run() {
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

void simulator::begin_stage(int rank, double now) {
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
    workers_[number].last = remember(now, now + k.launch, r.last, number, &time_parts::launch);
    push(now + k.launch, event_kind::worker, number);
  }
  // A stage without workers ends at once.
  if (r.running == 0) push(now, event_kind::stage, static_cast<std::uint32_t>(rank));
}

void simulator::advance(std::uint32_t number, double now) {
  const timed_worker& w = work_.workers()[number];
  worker_state& s = workers_[number];
  if (s.next == w.count) {
    // A kernel ends when all its stores have arrived.
    if (s.all_landed > now) {
      spend(number, now, s.all_landed, &time_parts::move, w.count);
      s.last = remember(now, s.all_landed, s.last, number, &time_parts::move);
      push(s.all_landed, event_kind::worker, number);
      return;
    }
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

void simulator::act(std::uint32_t number, const activity& a, double now) {
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
    const double begin = turn_of(number, a, at + a.begin_after);
    const passage p = net_.send(a.from, a.to, a.bytes, a.pace, begin, a.to == rank);
    // A get ends when its bytes have arrived.
    const bool fetches = a.from != rank;
    const double until = a.detached ? begin : fetches ? p.arrived : p.left;
    spend(number, at, until, &time_parts::move);
    s.last = remember(at, until, s.last, number, &time_parts::move);
    at = until;
    seen = std::max(p.arrived, at);
    s.sent_to = a.to;
    s.landed = p.arrived;
    if (!fetches) {
      s.all_landed = std::max(s.all_landed, p.arrived);
      s.receipt = std::max(s.receipt, p.arrived + net_.flight(a.to, a.from));
    }
  }
  // A release waits for the acknowledgements of earlier stores.
  if (a.raises > 0 && a.way == signal_way::released && !a.detached && !a.posted && s.receipt > at) {
    spend(number, at, s.receipt, &time_parts::move);
    s.last = remember(at, s.receipt, s.last, number, &time_parts::move);
    at = s.receipt;
    seen = std::max(seen, at);
  }
  for (std::uint32_t i = 0; i < a.raises; ++i)
    send(number, work_.raises()[a.first_raise + i], a, at, seen);
  push(at, event_kind::worker, number);
}

double simulator::turn_of(std::uint32_t number, const activity& a, double now) {
  const double rate = kernel_of(number).rate;
  if (rate <= 0 || a.from == a.to) return now;
  double& free = turns_[static_cast<std::size_t>(work_.workers()[number].kernel)];
  const double begin = std::max(now, free);
  free = begin + a.bytes / rate;
  return begin;
}

void simulator::send(std::uint32_t number, const signal& what, const activity& a, double at,
                     double seen) {
  const int rank = work_.workers()[number].rank;
  const worker_state& s = workers_[number];
  // Also within a rank, a release comes after all stores of the worker.
  double when = a.way == signal_way::released ? std::max(seen, s.receipt) : seen;
  if (what.rank != rank) {
    // A signal takes its own flight, and arrives after data: the data that carry it or, for a
    // release, all data that the worker has sent.
    when = std::max(seen, at + net_.flight(rank, what.rank));
    if (a.way == signal_way::inside) {
      if (s.sent_to == what.rank) when = std::max(when, s.landed);
    } else {
      const bool released = a.way == signal_way::released;
      const double ready = released ? std::max(at, s.receipt) : at;
      when = std::max(when, ready + net_.flight(rank, what.rank)) + (released ? n_.release : 0);
    }
  }
  const std::uint32_t place =
      keep(flying_, free_, in_flight{place_of(what), what.value, at, workers_[number].last});
  push(when, event_kind::arrival, place);
}

void simulator::arrive(std::uint32_t place, double now) {
  const in_flight flight = flying_[place];
  free_.push_back(place);
  counter& c = counters_[flight.place];
  if (flight.value <= c.value) return;
  c.value = flight.value;
  std::uint32_t next = c.waiters;
  c.waiters = none;
  while (next != none) {
    const waiter w = waiters_[next];
    free_waiters_.push_back(next);
    next = w.next;
    if (w.value > flight.value) {
      enlist(counters_[flight.place], w.value, w.worker);
    } else {
      wake(w.worker, flight, now);
    }
  }
}
void simulator::wake(std::uint32_t number, const in_flight& flight, double now) {
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
  const double late = std::clamp(flight.sent, s.since, on);
  spend(number, s.since, late, &time_parts::late_peer);
  spend(number, late, on, &time_parts::in_flight);
  s.last = remember(late, on, flight.cause, number, &time_parts::in_flight);
  s.acts = true;
  push(on, event_kind::worker, number);
}

void simulator::end_worker(std::uint32_t number, double now) {
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

void time_parts::add(const time_parts& other) noexcept {
  launch += other.launch;
  compute += other.compute;
  move += other.move;
  late_peer += other.late_peer;
  in_flight += other.in_flight;
  tail += other.tail;
}

time_parts simulation::path_parts() const {
  time_parts parts;
  for (const path_piece& piece : path) parts.*piece.part += piece.end - piece.begin;
  return parts;
}

simulation simulate(const workload& work, const machine& m, const simulation_options& options) {
  return simulator(work, m, options).run();
}

}  // namespace untax::timing
