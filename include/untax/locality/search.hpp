#pragma once

#include <functional>
#include <string>
#include <vector>

#include <untax/locality/block_order.hpp>
#include <untax/locality/certificate.hpp>
#include <untax/locality/simulate.hpp>

namespace untax::locality {

/// An order and its simulation.
struct ranked {
  block_order order;
  outcome found;
};

/// The result of a search.
struct search_result {
  ranked baseline;           ///< the order that others are compared with
  std::vector<ranked> best;  ///< shortest time first; of equal times the one with less traffic
  ranked most_hits;          ///< of the orders that were simulated in full
  certificate limit;
  int tried = 0;
  bool is_worth_it = true;  ///< whether the best order is better than the baseline
  std::string why_not;      ///< the reason if `is_worth_it` is false
};

/// Options of a search.
struct search_options {
  int threads = 2;
  int keep = 10;         ///< orders that are simulated in full and returned
  double touches = 3e5;  ///< cache accesses that are simulated in the first pass over each order
  double drifting_steps = 5e5;  ///< steps of the first pass, if blocks drift
  block_order baseline{"as numbered", {}, order::direction::forward};
  /// With several seeds, the baseline and the best order are simulated with each seed at the end.
  assumptions how;
  std::function<void(int)> begin;  ///< called with the number of simulations before the first
  std::function<void()> progress;  ///< called after each simulation, by any thread
};

/// Tries all orders of `order_space`. The first pass simulates a part of the kernel, or larger
/// steps; the best orders are then simulated in full. The result is deterministic for any number of
/// threads.
[[nodiscard]] search_result search(const kernel& k, const device& d,
                                   const search_options& options = {});

}  // namespace untax::locality
