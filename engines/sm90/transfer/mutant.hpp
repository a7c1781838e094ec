#pragma once

#include <untax/core/host_device.hpp>

// Kernels with one thing left out, for tests/gpu/mutants.sh, which compiles the library with
// -DUNTAX_MUTANT=<number> and wants its tests to fail. 0, as in every other build, is none.
#ifndef UNTAX_MUTANT
#define UNTAX_MUTANT 0
#endif

namespace untax::sm90 {

/// What is left out.
enum class mutant {
  none,
  gather_publish,    ///< a piece of A is not told of
  gather_reserve,    ///< a room is written without asking its readers
  gather_retire,     ///< readers do not say that they have read
  gather_tma_wait,   ///< a TMA tile of an epilogue warp is told of before it is written
  gather_proxy,      ///< TMA reads A without a proxy fence
  scatter_open,      ///< nobody is let write into C
  scatter_publish,   ///< a publisher does not say that its tiles are complete
  scatter_tma_wait,  ///< a tile is flagged before it is written
  scatter_proxy,     ///< TMA reads flagged tiles without a proxy fence
  results_proxy,     ///< TMA reads results without a proxy fence
};

inline constexpr mutant compiled_mutant{UNTAX_MUTANT};
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool left_out(mutant what) noexcept {
  return what == compiled_mutant;
}

}  // namespace untax::sm90
