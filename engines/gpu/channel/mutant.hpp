#pragma once

#include <untax/core/host_device.hpp>

#if defined(UNTAX_MUTANTS) && defined(__CUDACC__)
#include <cuda_runtime_api.h>

#include <vector>
#endif

// Kernel mutants: each one omits one operation. tests/gpu/mutants.sh compiles kernels with
// UNTAX_MUTANTS, selects a mutant for each run (tests/gpu/mutants.cu), and expects the tests that
// it names for it to fail. In every other build nothing is omitted: the compiler removes the
// checks.
namespace untax::gpu {

/// The operation that is omitted, or its effect.
enum class mutant {
  none,
  gather_publish,    ///< a chunk of A is not published
  gather_reserve,    ///< a room is written without a reserve
  gather_retire,     ///< readers do not retire what they have read
  gather_tma_wait,   ///< an epilogue warp publishes a TMA tile before its store completes
  gather_proxy,      ///< TMA reads A without a proxy fence
  scatter_open,      ///< C is not opened for peers
  scatter_publish,   ///< an output is not published
  scatter_tma_wait,  ///< a tile is flagged before its TMA stores complete
  scatter_proxy,     ///< TMA reads flagged tiles without a proxy fence
  results_proxy,     ///< TMA reads results without a proxy fence
  sums_reserve,      ///< partial sums are sent without a reserve
  sums_retire,       ///< an owner does not retire partial sums
  sums_reset,        ///< words of partial sums are not reset
  sums_acquire,      ///< blocks add peers' partials before they have arrived
  room_hand_over,    ///< plans hand a shared room over without a meeting of the ranks
  attend_lengths,    ///< a word of data may have the value that marks an empty word
  attend_parts,      ///< partial results of blocks are combined before they have arrived
  attend_ranks,      ///< partial results of ranks are combined before they have arrived
  attend_counters,   ///< counters of tiles are not reset for the next run
  words_marker,      ///< a word that is sent may be the one that stands for nothing
  results_acquire,   ///< a rank ends before the results of its peers have arrived
  stream_k_reset,    ///< partial sums of clusters are not reset for the next run
  step_arrivals,     ///< rows of a step are loaded before all blocks have written them
  step_parts,        ///< parts of a step's attention are merged before they have arrived
  step_reset,        ///< parts of a step's attention are not reset for the next layer
};

#if defined(UNTAX_MUTANTS) && defined(__CUDACC__)

/// Sets the mutant in the kernels of one source file. Each source file has its own variable, since
/// device code of different source files is not linked.
using mutant_setter = cudaError_t (*)(mutant);
inline std::vector<mutant_setter> mutant_setters;

namespace {
__constant__ mutant chosen_mutant;  // constant: a check costs almost nothing
[[maybe_unused]] const bool mutant_can_be_chosen = [] {
  mutant_setters.push_back(
      [](mutant m) { return cudaMemcpyToSymbol(chosen_mutant, &m, sizeof m); });
  return true;
}();
}  // namespace

[[nodiscard]] __device__ inline bool left_out(mutant what) { return what == chosen_mutant; }

#else

[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool left_out(mutant) noexcept { return false; }

#endif

}  // namespace untax::gpu
