#include <untax/locality/simulate.hpp>

#include <algorithm>
#include <cmath>

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

/// Steps of all blocks.
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
    const double all = std::ceil(std::ceil(static_cast<double>(k.blocks()) / d.domains) / slots);
    const double mean = steps / k.blocks();
    const double fit = how.steps / (slots * much.domains * mean);
    much.waves = static_cast<int>(
        k.has_equal_steps() ? std::min(all, std::max<double>(how.waves, fit)) : all);
  }
  return much;
}

}  // namespace

outcome simulate(const kernel& k, const device& d, const schedule& s, const effort& much,
                 const assumptions& how) {
  if (s.blocks.size() != static_cast<std::size_t>(k.blocks())) {
    throw error(errc::invalid_argument,
                fmt::format("an order of {} blocks does not fit a kernel of {}", s.blocks.size(),
                            k.blocks()));
  }
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
