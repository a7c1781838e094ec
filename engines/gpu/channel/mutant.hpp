#pragma once

#include <untax/core/host_device.hpp>

#if defined(UNTAX_MUTANTS) && defined(__CUDACC__)
#include <cuda_runtime_api.h>

#include <vector>
#endif

// Kernels with one thing left out, for tests/gpu/mutants.sh, which compiles the library with
// -DUNTAX_MUTANTS, chooses a mutant for each run of the tests (tests/gpu/mutants.cu), and expects
// them to fail. In every other build nothing is left out, and the compiler removes the check.
namespace untax::gpu {

/// What is left out.
enum class mutant {
  none,
  gather_publish,    ///< a chunk of A is not published
  gather_reserve,    ///< a room is written without a reserve
  gather_retire,     ///< readers do not retire what they have read
  gather_tma_wait,   ///< a TMA tile of an epilogue warp is published before it is written
  gather_proxy,      ///< TMA reads A without a proxy fence
  scatter_open,      ///< C is not opened for peers
  scatter_publish,   ///< a publisher does not publish its tiles
  scatter_tma_wait,  ///< a tile is flagged before it is written
  scatter_proxy,     ///< TMA reads flagged tiles without a proxy fence
  results_proxy,     ///< TMA reads results without a proxy fence
  sums_reserve,      ///< partial sums are sent without a reserve
  sums_retire,       ///< an owner does not retire partial sums
  sums_reset,        ///< words of partial sums are not reset
  sums_acquire,      ///< blocks add peers' partials before they have arrived
  attend_lengths,    ///< lengths read before the kernels ahead ended are not read again
};

#if defined(UNTAX_MUTANTS) && defined(__CUDACC__)

/// Sets the mutant in the kernels of one source. Each source has a variable of its own, since
/// device code of different sources is not linked.
using mutant_setter = cudaError_t (*)(mutant);
inline std::vector<mutant_setter>& mutant_setters() {
  static std::vector<mutant_setter> setters;
  return setters;
}

namespace {
__constant__ mutant chosen_mutant;  // so that asking costs next to nothing
[[maybe_unused]] const bool mutant_can_be_chosen = [] {
  mutant_setters().push_back(
      [](mutant m) { return cudaMemcpyToSymbol(chosen_mutant, &m, sizeof m); });
  return true;
}();
}  // namespace

[[nodiscard]] __device__ inline bool left_out(mutant what) { return what == chosen_mutant; }

#else

[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool left_out(mutant) noexcept { return false; }

#endif

}  // namespace untax::gpu
