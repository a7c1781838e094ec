#pragma once

#include <string>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>

namespace untax::locality {

/// Upper bounds on the hit rate of any order of a kernel's blocks on a device. docs/locality.md has
/// the theorems and their proofs.
struct certificate {
  double compulsory = 1;  ///< each piece of memory is missed once
  double in_waves = 1;    ///< the bound if each window of waves also needs more than the cache can
                          ///< have kept
  double any_timing = 1;  ///< the bound if blocks do not keep step
  double limit = 1;       ///< the least of the bounds that hold for this kernel
  std::string because;    ///< the name of that bound, as text for people
};

/// Computes the bounds if as many blocks run at the same time as `d` has places for.
[[nodiscard]] certificate certify(const kernel& k, const device& d);

}  // namespace untax::locality
