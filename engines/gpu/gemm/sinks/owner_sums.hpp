#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/sinks/sum_fragments.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"

namespace untax::gpu {

/// What kernels are given that send partial results to the ranks that add them, or add them.
struct sums_run : with_peers<sum_fragments> {
  std::int64_t slab_bytes = 0;    ///< of a slab of the inbox
  std::uint64_t* done = nullptr;  ///< in this GPU's memory: warps that have added all, ever
  int adding_warps = 0;           ///< of this rank
  bool mma_ctas_add = false;      ///< CTAs that multiply add, too; else other CTAs do
  /// How often an MMA warp polls for peers' partials of a tile that it has just multiplied. What
  /// has arrived by then it adds at once; the rest is deferred to the end.
  int polls = 0;
  bool own_in_registers = false;  ///< own partials stay in registers during that; two ranks only
  bool sends_by_tma = false;      ///< partials for one peer leave through shared memory
  bool lands_by_tma = false;      ///< peers' partials of own rows arrive in shared memory
  bool sends_zeros = false;       ///< a grid that only adds, of a rank without a shard of k
  dtype type = dtype::bf16;       ///< of A, weights and C
};

/// The rows of a sub-tile that a warp has: a TMA store of their own.
inline constexpr tma_tile_form landed_form{warpgroup_rows / sum_fragments::warps};

/// Shared memory of this sink, behind that of the pipeline.
template <tile_config config>
struct landed_sums {
  /// 16-bit partials of a warp in a tile.
  static constexpr int strip_bytes = config.block_n / 8 * sum_fragments::lanes * 8;

  alignas(128) std::byte zeros[strip_bytes];
  /// By group, epilogue buffer and warp: whether the buffer has complete sums.
  bool added[mma_warpgroups][config.epilogue_buffers][sum_fragments::warps];
};

/// A sink: partial results of a rank go from the registers of the MMA warpgroups to the owners of
/// their rows, through shared memory and TMA where one peer owns all rows of a warpgroup. Either
/// CTAs of their own add what arrives, or the MMA warpgroups do: of a tile when they have
/// multiplied it, as far as it has arrived, and the rest at the end.
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

/// Senders that send nothing: communication CTAs add what peers have sent.
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
