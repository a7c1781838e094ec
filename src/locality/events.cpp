#include <cmath>
#include <unordered_map>
#include <utility>

#include "src/locality/cache.hpp"
#include "src/locality/pieces.hpp"
#include "src/locality/runs.hpp"

namespace untax::locality {
namespace {

/// An approximately standard normal value, a hash of `number`: the sum of four uniform values.
double normal(std::uint64_t number) {
  const std::uint64_t bits = scattered(static_cast<std::int64_t>(number));
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>((bits >> (16 * i)) & 0xffff) / 65536 - 0.5;
  return sum * 1.7320508;
}

/// Each slot of a processor runs steps: it waits for the reads of a step, then computes. The waits
/// for the accesses of a step add up. A piece that another block has requested counts as a hit. The
/// block waits for its arrival only with `waits_for_others`.
class events {
 public:
  events(const kernel& k, const device& d, const schedule& s, const assumptions& how, int domains)
      : k_(k),
        d_(d),
        s_(s),
        how_(how),
        pieces_(k, d),
        domains_(domains),
        share_(static_cast<double>(domains) / d.domains) {
    for (int i = 0; i < domains; ++i) caches_.emplace_back(d, pieces_.unit);
    if (d.last_level)
      shared_.emplace_back(d.last_level->bytes * share_, d.last_level->ways, pieces_.unit);
    found_.operands.resize(k.operands().size());
    found_.domains.resize(static_cast<std::size_t>(domains));
    port_free_.resize(static_cast<std::size_t>(domains));
    under_way_.resize(static_cast<std::size_t>(domains));
    step_seconds_ = k.flops() * k.resident() / (d.flops / d.all_processors() * how.efficiency);
    const level& next = d.last_level ? *d.last_level : d.memory;
    port_rate_ = next.bytes_per_second / d.domains;
    memory_rate_ = d.memory.bytes_per_second * share_;
    processor_rate_ = d.cache.bytes_per_second / d.processors;
  }

  outcome run(int waves) {
    queues_ = assigned(s_.blocks, d_);
    const int slots = d_.processors * k_.resident();
    next_.assign(static_cast<std::size_t>(domains_), 0);
    const auto most = static_cast<std::size_t>(waves) * static_cast<std::size_t>(slots);
    for (int domain = 0; domain < domains_; ++domain) {
      auto& queue = queues_[static_cast<std::size_t>(domain)];
      if (queue.size() > most) queue.resize(most);
      for (int slot = 0; slot < slots; ++slot) {
        place p;
        p.domain = domain;
        p.number = static_cast<int>(places_.size());
        p.side = caches_[static_cast<std::size_t>(domain)].side_of(static_cast<std::size_t>(slot));
        p.slowness = 1 + how_.speed_spread * normal(seeded(static_cast<std::uint64_t>(p.number)));
        places_.push_back(p);
      }
    }
    // Slots get their first blocks in turns over the domains, so all domains begin together.
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::size_t domain = i % static_cast<std::size_t>(domains_);
      const std::size_t slot = i / static_cast<std::size_t>(domains_);
      const std::size_t number = domain * static_cast<std::size_t>(slots) + slot;
      if (begin(places_[number])) waiting_.push_back({0, static_cast<int>(number)});
    }
    while (!waiting_.empty()) {
      const auto [time, number] = waiting_.front();
      place& p = places_[static_cast<std::size_t>(number)];
      if (p.step == p.steps && !begin(p)) {
        found_.seconds = std::max(found_.seconds, time);
        waiting_.front() = waiting_.back();
        waiting_.pop_back();
      } else {
        waiting_.front() = {step(p, time), number};
      }
      sink();
    }
    return std::move(found_);
  }

 private:
  /// A number for `normal` that differs by seed.
  [[nodiscard]] std::uint64_t seeded(std::uint64_t number) const {
    return how_.seed == 0 ? number : number ^ scattered(static_cast<std::int64_t>(how_.seed));
  }
  struct place {
    int domain = 0;
    int side = 0;
    int number = 0;
    double slowness = 1;
    int steps = 0;
    int step = 0;
    int turn = -1;
    std::int64_t stream = -1;  // first granule of a regular access that moves with steps; -1: none
    std::vector<access> accesses;
    std::vector<kernel::run> runs;  // of the accesses
  };
  struct event {
    double time;
    int place;
    [[nodiscard]] bool is_before(const event& other) const {
      return time != other.time ? time < other.time : place < other.place;
    }
  };

  /// Restores the heap `waiting_` after its first event was replaced: moves that event down.
  void sink() {
    const std::size_t count = waiting_.size();
    for (std::size_t i = 0;;) {
      std::size_t least = i;
      for (const std::size_t child : {2 * i + 1, 2 * i + 2}) {
        if (child < count && waiting_[child].is_before(waiting_[least])) least = child;
      }
      if (least == i) return;
      std::swap(waiting_[i], waiting_[least]);
      i = least;
    }
  }

  bool begin(place& p) {
    const auto domain = static_cast<std::size_t>(p.domain);
    auto& next = next_[domain];
    if (next == queues_[domain].size()) return false;
    const int block = queues_[domain][next++];
    p.steps = k_.steps(block);
    p.step = 0;
    ++p.turn;
    p.accesses = k_.accesses(block);
    p.runs.clear();
    for (const access& a : p.accesses) p.runs.push_back(k_.run_of(a, p.steps));
    if (s_.way == order::direction::joined) join(p);
    ++found_.blocks;
    found_.steps += p.steps;
    return true;
  }

  /// Starts a block at the last step of a block of its domain that reads the same stream.
  void join(place& p) {
    p.stream = -1;
    for (std::size_t i = 0; i < p.runs.size() && p.stream < 0; ++i) {
      const bool moves = p.accesses[i].when == moment::every_step && p.runs[i].per_step > 0;
      if (moves) p.stream = p.runs[i].first;
    }
    const auto& under_way = under_way_[static_cast<std::size_t>(p.domain)];
    const auto match = under_way.find(p.stream);
    p.turn = match != under_way.end() && match->second < p.steps ? match->second : 0;
  }

  /// Simulates one step from time `now`. Returns the time at which it ends.
  double step(place& p, double now) {
    double waited = 0;
    double bytes = 0;
    const int at = order::step_order{p.steps, s_.way, p.turn, 1}.block(p.step);
    if (p.stream >= 0) under_way_[static_cast<std::size_t>(p.domain)][p.stream] = at;
    for (std::size_t i = 0; i < p.accesses.size(); ++i) {
      const access& a = p.accesses[i];
      if (!is_now(a, p.step, p.steps)) continue;
      const auto operand = static_cast<std::size_t>(a.operand);
      const int moved = a.when == moment::every_step ? at : 0;
      double arrives = now;
      const auto use = [&](std::int64_t granule) {
        bytes += pieces_.bytes[operand];
        arrives = std::max(arrives, fetch(p, operand, granule, a.is_write, now));
      };
      const kernel::run& run = p.runs[i];
      if (run.is_regular) {
        const std::int64_t first = run.first + run.per_step * moved;
        for (std::int64_t granule = first; granule < first + run.count; ++granule) use(granule);
      } else {
        k_.for_granules(a, moved, use);
      }
      if (!a.is_write) waited += arrives - now;
    }
    for (const auto& [piece, piece_bytes] : brought_) bring(p, piece, piece_bytes, now);
    brought_.clear();
    const double noise = normal(seeded((static_cast<std::uint64_t>(p.number) << 40) ^ ++drawn_));
    const double work =
        std::max(step_seconds_, bytes / processor_rate_) * (p.slowness + how_.step_spread * noise);
    found_.compute_seconds += work / static_cast<double>(places_.size());
    ++p.step;
    return now + waited + work;
  }

  /// Reads or writes a granule at time `now`. Returns the time at which it has arrived.
  double fetch(const place& p, std::size_t operand, std::int64_t granule, bool is_write,
               double now) {
    const auto domain = static_cast<std::size_t>(p.domain);
    const int units = pieces_.units[operand];
    const double bytes = pieces_.bytes[operand] / units;
    traffic& of_operand = found_.operands[operand];
    traffic& of_domain = found_.domains[domain];
    double arrives = now;
    for (int i = 0; i < units; ++i) {
      const std::int64_t piece = pieces_.number(operand, granule, i);
      of_operand.requested += bytes;
      of_domain.requested += bytes;
      if (!is_write) found_.near_reads.requested += bytes;
      sided_cache& cache = caches_[domain];
      const auto [is_near, held] = cache.use(p.side, piece, is_write, now);
      if (held < 0) {
        const double arrival = from_next_level(domain, piece, bytes, now);
        const std::int64_t partner = pieces_.partner(operand, granule);
        if (partner >= 0 && !is_write)
          brought_.emplace_back(pieces_.number(operand, partner, i), bytes);
        cache.set_arrival(p.side, piece, is_write, arrival);
        arrives = std::max(arrives, arrival);
        continue;
      }
      of_operand.hit += bytes;
      of_domain.hit += bytes;
      if (is_near && !is_write) found_.near_reads.hit += bytes;
      if (how_.waits_for_others) arrives = std::max(arrives, held);
      if (is_near || is_write) continue;
      found_.far_bytes += bytes;
      arrives = std::max(arrives, now + d_.cache.far_latency);
      cache.set_near_arrival(p.side, piece, arrives);
    }
    return arrives;
  }

  /// Inserts a piece that memory sent along with a requested one, unless the cache has it.
  void bring(const place& p, std::int64_t piece, double bytes, double now) {
    const auto domain = static_cast<std::size_t>(p.domain);
    sided_cache& cache = caches_[domain];
    if (cache.use(p.side, piece, false, now).arrives < 0)
      cache.set_arrival(p.side, piece, false, from_next_level(domain, piece, bytes, now));
  }

  double from_next_level(std::size_t domain, std::int64_t piece, double bytes, double now) {
    found_.next_bytes += bytes;
    double& port = port_free_[domain];
    port = std::max(port, now) + bytes / port_rate_;
    if (!shared_.empty()) {
      found_.last_level.requested += bytes;
      if (shared_.front().use(piece, 0) >= 0) {
        found_.last_level.hit += bytes;
        return port + d_.last_level->latency;
      }
    }
    found_.memory_bytes += bytes;
    memory_free_ = std::max(memory_free_, now) + bytes / memory_rate_;
    return std::max(port, memory_free_) + d_.memory.latency;
  }

  const kernel& k_;
  const device& d_;
  const schedule& s_;
  const assumptions& how_;
  pieces pieces_;
  int domains_;
  double share_;
  double step_seconds_ = 0;
  double port_rate_ = 1;
  double memory_rate_ = 1;
  double processor_rate_ = 1;
  std::vector<sided_cache> caches_;
  std::vector<cache> shared_;
  std::vector<std::unordered_map<std::int64_t, int>> under_way_;  // the last step of each stream
  std::vector<double> port_free_;
  double memory_free_ = 0;
  std::vector<std::vector<int>> queues_;
  std::vector<std::size_t> next_;
  std::vector<place> places_;
  std::vector<event> waiting_;
  std::vector<std::pair<std::int64_t, double>> brought_;  // pieces that came along, and bytes
  std::uint64_t drawn_ = 0;
  outcome found_;
};

}  // namespace

outcome simulate_events(const kernel& k, const device& d, const schedule& s, const effort& much,
                        const assumptions& how) {
  const int domains = much.domains > 0 ? std::min(much.domains, d.domains) : d.domains;
  return events(k, d, s, how, domains).run(much.waves);
}

}  // namespace untax::locality
