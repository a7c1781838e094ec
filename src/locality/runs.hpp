#pragma once

#include <algorithm>
#include <vector>

#include <untax/locality/simulate.hpp>

namespace untax::locality {

[[nodiscard]] outcome simulate_waves(const kernel& k, const device& d, const schedule& s,
                                     const effort& much, const assumptions& how);
[[nodiscard]] outcome simulate_events(const kernel& k, const device& d, const schedule& s,
                                      const effort& much, const assumptions& how);

/// The blocks of each domain, in the order in which it starts them.
[[nodiscard]] inline std::vector<std::vector<int>> assigned(const std::vector<int>& blocks,
                                                            const device& d) {
  std::vector<std::vector<int>> of(static_cast<std::size_t>(d.domains));
  for (std::size_t p = 0; p < blocks.size(); ++p)
    of[p / static_cast<std::size_t>(d.chunk) % of.size()].push_back(blocks[p]);
  return of;
}

[[nodiscard]] inline bool is_now(const access& a, int step, int steps) {
  if (a.when == moment::first_step) return step == 0;
  if (a.when == moment::last_step) return step == steps - 1;
  if (a.when == moment::given_step) return step == a.given_step;
  return true;
}

}  // namespace untax::locality
