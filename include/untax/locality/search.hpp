#pragma once

#include <string>
#include <vector>

#include <untax/locality/block_order.hpp>
#include <untax/locality/certificate.hpp>
#include <untax/locality/simulate.hpp>

namespace untax::locality {

struct ranked {
  block_order order;
  outcome found;
};

struct search_result {
  ranked numbered;           ///< the order that the kernel has anyway
  std::vector<ranked> best;  ///< shortest time first; of equal ones that with less traffic
  ranked most_hits;          ///< of those that were simulated in full
  certificate limit;
  int tried = 0;
  bool is_worth_it = true;  ///< whether the best order gains anything
  std::string why_not;      ///< where it does not: why
};

struct search_options {
  int threads = 2;
  int keep = 10;                ///< that are simulated in full and handed back
  double touches = 3e5;         ///< of caches, in the first look at each order
  double drifting_steps = 5e5;  ///< the same where blocks drift
  assumptions how;
};

/// Tries all orders of `order_space`: each with a part of the kernel or with larger steps, the best
/// ones in full. Deterministic, whatever the threads.
[[nodiscard]] search_result search(const kernel& k, const device& d,
                                   const search_options& options = {});

}  // namespace untax::locality
