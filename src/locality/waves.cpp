#include <cmath>

#include "src/locality/cache.hpp"
#include "src/locality/pieces.hpp"
#include "src/locality/runs.hpp"

namespace untax::locality {
namespace {

/// Simulates waves of blocks that are all at the same step. Data that several blocks on one side of
/// a domain read in a step is looked up in the caches once.
class waves {
 public:
  waves(const kernel& k, const device& d, const schedule& s, const assumptions& how, int domains)
      : k_(k),
        d_(d),
        s_(s),
        how_(how),
        pieces_(k, d),
        seen_(static_cast<std::size_t>(k.granules())) {
    const double share = static_cast<double>(domains) / d.domains;
    for (int i = 0; i < domains; ++i) caches_.emplace_back(d, pieces_.unit);
    if (d.last_level)
      shared_.emplace_back(d.last_level->bytes * share, d.last_level->ways, pieces_.unit);
    found_.operands.resize(k.operands().size());
    found_.domains.resize(static_cast<std::size_t>(domains));
    share_ = share;
  }

  outcome run(int most_waves) {
    const auto queues = assigned(s_.blocks, d_);
    const auto slots =
        static_cast<std::size_t>(d_.processors) * static_cast<std::size_t>(k_.resident());
    std::size_t longest = 0;
    for (const auto& queue : queues) longest = std::max(longest, queue.size());
    auto count = (longest + slots - 1) / slots;
    if (most_waves > 0) count = std::min(count, static_cast<std::size_t>(most_waves));
    if (k_.has_lines()) {
      roll(queues, slots, count);
      return std::move(found_);
    }
    for (std::size_t wave = 0; wave < count; ++wave) {
      start(queues, wave, slots);
      for (int step = 0; step < steps_; ++step) {
        for (std::size_t domain = 0; domain < caches_.size(); ++domain) {
          for (int side = 0; side < d_.cache.sides; ++side) one_step(domain, side, step);
        }
      }
      finish();
    }
    return std::move(found_);
  }

 private:
  struct running {
    int steps = 0;
    int turn = 0;
    int side = 0;
    std::vector<access> accesses;
  };

  /// Simulates blocks that begin one after the other, as others end: running blocks are spread
  /// evenly over their steps.
  void roll(const std::vector<std::vector<int>>& queues, std::size_t slots,
            std::size_t most_waves) {
    const int most_steps = k_.steps(0);
    const auto behind = [&](int step) {
      return slots * static_cast<std::size_t>(step) / static_cast<std::size_t>(most_steps);
    };
    std::size_t longest = 0;
    for (const auto& queue : queues) longest = std::max(longest, queue.size());
    longest = std::min(longest, most_waves * slots);
    const std::size_t window = behind(most_steps - 1) + 1;
    std::vector<std::vector<running>> under_way(caches_.size(), std::vector<running>(window));
    running_.assign(caches_.size(), {});
    asked_.assign(caches_.size(), 0);
    for (std::size_t turn = 0; turn < longest + window - 1; ++turn) {
      for (std::size_t domain = 0; domain < caches_.size(); ++domain) {
        const auto& queue = queues[domain];
        if (turn < std::min(queue.size(), longest)) {
          running& next = under_way[domain][turn % window];
          next = {k_.steps(queue[turn]), 0, caches_[domain].side_of(turn % slots),
                  k_.accesses(queue[turn])};
          ++found_.blocks;
          found_.steps += next.steps;
          running_[domain].push_back({next.steps, 0, 0, {}});
        }
        for (int step = 0; step < most_steps; ++step) {
          const std::size_t late = behind(step);
          if (turn < late || turn - late >= std::min(queue.size(), longest)) continue;
          const running& block = under_way[domain][(turn - late) % window];
          if (step < block.steps) block_step(block, domain, block.side, step);
        }
      }
      if (turn % slots == slots - 1 || turn + 1 == longest + window - 1) {
        finish();
        running_.assign(caches_.size(), {});
        asked_.assign(caches_.size(), 0);
        next_ = 0;
        memory_ = 0;
      }
    }
  }

  void start(const std::vector<std::vector<int>>& queues, std::size_t wave, std::size_t slots) {
    running_.assign(caches_.size(), {});
    asked_.assign(caches_.size(), 0);
    // All blocks are at the same step, so a block that joins the others begins with them.
    const int turn = s_.way == order::direction::joined ? 0 : static_cast<int>(wave);
    steps_ = 0;
    next_ = 0;
    memory_ = 0;
    for (std::size_t domain = 0; domain < caches_.size(); ++domain) {
      const auto& queue = queues[domain];
      for (std::size_t i = wave * slots; i < std::min(queue.size(), (wave + 1) * slots); ++i) {
        const int steps = k_.steps(queue[i]);
        running_[domain].push_back(
            {steps, turn, caches_[domain].side_of(i - wave * slots), k_.accesses(queue[i])});
        steps_ = std::max(steps_, steps);
        ++found_.blocks;
        found_.steps += steps;
      }
    }
  }

  /// Simulates one step, block after block: a block hits the data that an earlier one has fetched.
  void one_step(std::size_t domain, int side, int step) {
    ++stamp_;
    for (const running& r : running_[domain]) {
      if (step < r.steps && r.side == side) block_step(r, domain, side, step);
    }
  }

  void block_step(const running& r, std::size_t domain, int side, int step) {
    traffic& domain_traffic = found_.domains[domain];
    const int at = order::step_order{r.steps, s_.way, r.turn, 1}.block(step);
    brought_.clear();
    for (const access& a : r.accesses) {
      if (!is_now(a, step, r.steps)) continue;
      const auto operand = static_cast<std::size_t>(a.operand);
      const double bytes = pieces_.bytes[operand];
      const auto touch = [&](std::int64_t granule, const kernel::part& part) {
        found_.operands[operand].requested += bytes;
        domain_traffic.requested += bytes;
        if (!a.is_write) found_.near_reads.requested += bytes;
        asked_[domain] += bytes;
        auto& seen = seen_[static_cast<std::size_t>(granule)];
        double held = 1;  // the share of the bytes that hits
        // At the same step, blocks request data that are on their way. Blocks of one step are at
        // different places in it.
        if (seen == stamp_ && !k_.has_lines()) {
          found_.operands[operand].hit += bytes;
          domain_traffic.hit += bytes;
          if (!a.is_write) found_.near_reads.hit += bytes;
        } else {
          seen = stamp_;
          held = fetch(domain, side, operand, granule, a.is_write);
        }
        if (d_.write > 0) count(a, part, held);
      };
      k_.for_parts(a, a.when == moment::every_step ? at : 0, touch);
    }
    for (const auto& [granule, operand] : brought_) bring(domain, side, granule, operand);
  }

  /// Inserts a granule that memory sent along with another, unless it was used in this step.
  void bring(std::size_t domain, int side, std::int64_t granule, std::size_t operand) {
    auto& seen = seen_[static_cast<std::size_t>(granule)];
    if (seen == stamp_) return;
    seen = stamp_;
    const int units = pieces_.units[operand];
    for (int i = 0; i < units; ++i) {
      const std::int64_t piece = pieces_.number(operand, granule, i);
      if (caches_[domain].use(side, piece, false, 0).arrives < 0)
        (void)from_next_level(piece, pieces_.bytes[operand] / units);
    }
  }

  [[nodiscard]] int sector_of_write() const { return d_.write > 0 ? d_.write : d_.sector; }

  /// Counts the requests of an access to a part of a granule, of which the share `held` hits.
  void count(const access& a, const kernel::part& part, double held) {
    const double lines = part.units(d_.line);
    const double requests = a.is_write ? part.units(d_.write) : lines;
    found_.counted.requested += requests;
    found_.counted.hit += requests - lines * (1 - held);
  }

  /// Returns the part of the granule that hits.
  double fetch(std::size_t domain, int side, std::size_t operand, std::int64_t granule,
               bool is_write) {
    const int units = pieces_.units[operand];
    const double bytes = pieces_.bytes[operand] / units;
    bool missed = false;
    int held_units = 0;
    for (int i = 0; i < units; ++i) {
      const std::int64_t piece = pieces_.number(operand, granule, i);
      const auto [is_near, held] = caches_[domain].use(side, piece, is_write, 0);
      if (held >= 0) {
        ++held_units;
        found_.operands[operand].hit += bytes;
        found_.domains[domain].hit += bytes;
        if (is_write) continue;
        (is_near ? found_.near_reads.hit : found_.far_bytes) += bytes;
        continue;
      }
      missed = from_next_level(piece, bytes, is_write && k_.has_lines()) || missed;
    }
    const std::int64_t partner = pieces_.partner(operand, granule);
    if (missed && partner >= 0 && !is_write) brought_.push_back({partner, operand});
    return static_cast<double>(held_units) / units;
  }

  /// Counts a miss of a domain's cache, unless `is_counted` in the traffic of memory. Returns
  /// whether the data came from memory.
  bool from_next_level(std::int64_t piece, double bytes, bool is_counted = false) {
    next_ += bytes;
    if (!shared_.empty()) {
      found_.last_level.requested += bytes;
      if (shared_.front().use(piece, 0) >= 0) {
        found_.last_level.hit += bytes;
        return false;
      }
    }
    if (!is_counted) memory_ += bytes;
    return true;
  }

  /// Adds the time of a wave: the time of its slowest resource, and a part of the times of the
  /// others.
  void finish() {
    double flops = 0;
    double asked = 0;
    for (std::size_t domain = 0; domain < caches_.size(); ++domain) {
      double mine = 0;
      for (const running& r : running_[domain]) mine += r.steps * k_.flops();
      flops = std::max(flops, mine);
      asked = std::max(asked, asked_[domain]);
    }
    const double compute = flops / (d_.flops / d_.domains * how_.efficiency);
    const double next = d_.last_level ? next_ / (d_.last_level->bytes_per_second * share_) : 0;
    found_.compute_seconds += compute;
    const double cache = asked / d_.cache.bytes_per_second;
    const double memory = memory_ / (d_.memory.bytes_per_second * share_);
    const double longest = std::max({compute, cache, next, memory});
    found_.seconds += longest + how_.unhidden * (compute + cache + next + memory - longest);
    found_.next_bytes += next_;
    found_.memory_bytes += memory_;
  }

  const kernel& k_;
  const device& d_;
  const schedule& s_;
  const assumptions& how_;
  pieces pieces_;
  double share_ = 1;
  std::vector<sided_cache> caches_;
  std::vector<cache> shared_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
  std::vector<std::pair<std::int64_t, std::size_t>> brought_;  // granules that came along
  std::vector<std::vector<running>> running_;
  std::vector<double> asked_;
  int steps_ = 0;
  double next_ = 0;
  double memory_ = 0;
  outcome found_;
};

}  // namespace

outcome simulate_waves(const kernel& k, const device& d, const schedule& s, const effort& much,
                       const assumptions& how) {
  const int domains = much.domains > 0 ? std::min(much.domains, d.domains) : d.domains;
  return waves(k, d, s, how, domains).run(much.waves);
}

}  // namespace untax::locality
