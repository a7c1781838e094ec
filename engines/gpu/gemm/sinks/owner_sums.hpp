#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/sinks/sum_fragments.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"

namespace untax::gpu {

/// What all kernels are given that send partial results to who adds them, or add them.
struct sums_run : with_peers<sum_fragments> {
  std::int64_t slab_bytes = 0;    ///< of a slab of the inbox
  std::uint64_t* done = nullptr;  ///< in this GPU's memory: warps that have added all, ever
  int adding_warps = 0;           ///< of this rank
  bool adds_itself = false;       ///< CTAs that multiply add when they have
  /// How often a warp looks, behind each tile, whether what others have of it has come, which it
  /// then adds. The rest is added at the end.
  int looks = 0;
  bool keeps = false;        ///< meanwhile the own sums stay in registers; between two ranks
  bool stages = false;       ///< what is for one peer alone leaves through shared memory
  bool lands = false;        ///< what peers have of own rows is brought there, and added
  bool sends_zeros = false;  ///< a grid that only adds, of a rank that has nothing of k
  dtype type = dtype::bf16;  ///< of A, weights and C
};

/// What a warp has of a sub-tile, which is stored by itself.
inline constexpr tma_tile_form landed_form{warpgroup_rows / sum_fragments::warps};

/// What a sink of sums has of shared memory, behind that of the pipeline.
template <tile_config config>
struct landed_sums {
  /// 16-bit partials of a warp in a tile.
  static constexpr int strip_bytes = config.block_n / 8 * sum_fragments::lanes * 8;

  alignas(128) std::byte zeros[strip_bytes];
  /// By group, place and warp: whether the sums of a sub-tile are there.
  bool added[mma_warpgroups][config.epilogue_buffers][sum_fragments::warps];
};

/// Partial results of a rank go from the registers of the MMA warpgroups into the memory of the
/// owners of their rows; through shared memory where all of a group are one peer's. Where no CTA
/// does nothing but add, the warpgroups add: what has come of a tile behind it, the rest at the
/// end.
struct owner_sums {
  template <tile_config config>
  static constexpr std::size_t own_bytes = can_stage(config) ? sizeof(landed_sums<config>) : 0;

  struct arguments {
    /// This rank's rows in the copies of C that have their sums, in the order of hops: TMA tiles of
    /// `landed_form`.
    CUtensorMap c[most_ranks];
  };
  template <class Io>
  class view;
};

/// Communication CTAs add what has come.
struct sum_adders {
  using run = sums_run;
  struct arguments {};
  template <class Io>
  class view;
};

/// What the GEMM is given that sums over ranks.
using summed_io = gemm_io<local_source, owner_sums, sum_adders>;
/// What a kernel is given that only adds.
using adding_io = comm_io<sum_adders>;

}  // namespace untax::gpu
