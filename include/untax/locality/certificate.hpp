#pragma once

#include <string>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>

namespace untax::locality {

/// What no order of a kernel's blocks can exceed on a device: docs/locality.md has the theorems and
/// their proofs.
struct certificate {
  double compulsory = 1;  ///< each piece of memory is missed once: a bound on the hit rate
  double in_waves = 1;    ///< and each window of waves needs more than the cache can have kept
  double any_timing = 1;  ///< the same where blocks keep no step together
  double limit = 1;       ///< the least of those that hold for this kernel
  std::string because;    ///< which one that is, for people
};

/// `k` is simulated with as many blocks at the same time as `d` has places for.
[[nodiscard]] certificate certify(const kernel& k, const device& d);

}  // namespace untax::locality
