#include <untax/locality/simulate.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/locality/runs.hpp"

namespace untax::locality {
namespace {

/// Scales traffic from the simulated part to the whole kernel.
void extend(outcome& o, double factor) {
  const auto longer = [&](traffic& t) {
    t.requested *= factor;
    t.hit *= factor;
  };
  for (traffic& t : o.operands) longer(t);
  longer(o.near_reads);
  longer(o.counted);
  longer(o.last_level);
  o.memory_bytes *= factor;
  o.far_bytes *= factor;
  o.next_bytes *= factor;
}

/// The number of steps of all blocks.
double steps_of(const kernel& k) {
  if (k.has_equal_steps()) return static_cast<double>(k.blocks()) * k.steps(0);
  double steps = 0;
  for (int block = 0; block < k.blocks(); ++block) steps += k.steps(block);
  return steps;
}

/// The part that is simulated if blocks drift: everything if that is at most `how.steps` steps,
/// else two domains with as many waves as these steps allow, and at least `how.waves`. If blocks
/// differ in steps, it is all waves, since the first ones are not like the rest.
effort affordable(const kernel& k, const device& d, const effort& asked, const assumptions& how) {
  effort much = asked;
  const double steps = steps_of(k);
  if (much.domains <= 0) much.domains = steps <= how.steps ? d.domains : 2;
  much.domains = std::min(much.domains, d.domains);
  if (much.waves <= 0) {
    const double slots = static_cast<double>(d.processors) * k.resident();
    const double total = std::ceil(std::ceil(static_cast<double>(k.blocks()) / d.domains) / slots);
    const double mean = steps / k.blocks();
    const double fit = how.steps / (slots * much.domains * mean);
    much.waves = static_cast<int>(
        k.has_equal_steps() ? std::min(total, std::max<double>(how.waves, fit)) : total);
  }
  return much;
}

/// Twice the standard deviation.
double spread_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return count > 1 ? 2 * std::sqrt(squares / (count - 1)) : 0;
}

/// The mean of simulations that differ by seed.
outcome mean_of(const std::vector<outcome>& runs) {
  outcome mean = runs.front();
  mean.seeds = static_cast<int>(runs.size());
  const double part = 1.0 / mean.seeds;
  const auto average = [&](auto member) {
    double sum = 0;
    for (const outcome& run : runs) sum += member(run);
    return sum * part;
  };
  const auto average_traffic = [&](traffic& to, auto member) {
    to.requested = average([&](const outcome& run) { return member(run).requested; });
    to.hit = average([&](const outcome& run) { return member(run).hit; });
  };
  for (std::size_t i = 0; i < mean.operands.size(); ++i)
    average_traffic(mean.operands[i], [i](const outcome& run) { return run.operands[i]; });
  for (std::size_t i = 0; i < mean.domains.size(); ++i)
    average_traffic(mean.domains[i], [i](const outcome& run) { return run.domains[i]; });
  average_traffic(mean.all, [](const outcome& run) { return run.all; });
  average_traffic(mean.near_reads, [](const outcome& run) { return run.near_reads; });
  average_traffic(mean.last_level, [](const outcome& run) { return run.last_level; });
  for (double outcome::*member : {&outcome::memory_bytes, &outcome::far_bytes, &outcome::next_bytes,
                                  &outcome::seconds, &outcome::compute_seconds})
    mean.*member = average([member](const outcome& run) { return run.*member; });
  std::vector<double> rates;
  std::vector<double> seconds;
  for (const outcome& run : runs) {
    rates.push_back(run.all.rate());
    seconds.push_back(run.seconds);
  }
  mean.rate_spread = spread_of(rates);
  mean.seconds_spread = spread_of(seconds);
  return mean;
}

/// Simulates with each seed, on as many threads as there are processors.
outcome simulate_seeds(const kernel& k, const device& d, const schedule& s, const effort& much,
                       const assumptions& how) {
  // Blocks and their accesses are computed once.
  const kernel known = k.remembered();
  std::vector<outcome> runs(static_cast<std::size_t>(how.seeds));
  std::vector<std::future<void>> running;
  std::atomic<std::size_t> next = 0;
  const auto take_part = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) {
      assumptions single = how;
      single.seeds = 1;
      single.seed = how.seed + i;
      single.steps = how.steps / how.seeds;
      runs[i] = simulate(known, d, s, much, single);
    }
  };
  const auto others = std::min(std::max(1U, std::thread::hardware_concurrency()),
                               static_cast<unsigned>(how.seeds)) -
                      1;
  for (unsigned i = 0; i < others; ++i)
    running.push_back(std::async(std::launch::async, take_part));
  take_part();
  for (std::future<void>& thread : running) thread.get();
  return mean_of(runs);
}

}  // namespace

outcome simulate(const kernel& k, const device& d, const schedule& s, const effort& much,
                 const assumptions& how) {
  if (s.blocks.size() != static_cast<std::size_t>(k.blocks())) {
    throw error(errc::invalid_argument,
                fmt::format("an order of {} blocks does not fit a kernel of {}", s.blocks.size(),
                            k.blocks()));
  }
  if (k.drifts() && how.seeds > 1) return simulate_seeds(k, d, s, much, how);
  outcome o = k.drifts() ? simulate_events(k, d, s, affordable(k, d, much, how), how)
                         : simulate_waves(k, d, s, much, how);
  const double domains = static_cast<double>(o.domains.size());
  const double factor = steps_of(k) / o.steps;
  extend(o, factor);
  o.seconds *= factor * domains / d.domains;
  o.compute_seconds *= factor * domains / d.domains;
  for (const traffic& t : o.operands) {
    o.all.requested += t.requested;
    o.all.hit += t.hit;
  }
  return o;
}

}  // namespace untax::locality
