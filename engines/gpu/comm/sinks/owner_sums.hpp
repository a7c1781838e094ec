#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/comm/sinks/sum_fragments.hpp"
#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"

namespace untax::gpu {

/// Arguments of kernels that send partial results to the ranks that add them, or that add them.
struct sums_run : with_peers<sum_fragments> {
  std::int64_t slab_bytes = 0;    ///< of a slab of the inbox
  std::uint64_t* done = nullptr;  ///< in this GPU's memory: warps that added all, in all runs
  int adding_warps = 0;           ///< at this rank
  bool mma_ctas_add = false;      ///< CTAs that multiply also add; else other CTAs do
  /// How often an MMA warp polls for peers' partials of a tile that it has just multiplied. It adds
  /// what has arrived by then, and defers the rest to the end.
  int polls = 0;
  bool own_in_registers = false;  ///< own partials stay in registers while it polls; two ranks only
  bool sends_by_tma = false;      ///< partials for a single peer are sent through shared memory
  bool lands_by_tma = false;      ///< peers' partials of own rows arrive in shared memory
  bool sends_zeros = false;       ///< a grid that only adds sends zeros: its rank has no shard of k
  dtype type = dtype::bf16;       ///< of A, the weights and C
};

/// The rows of a sub-tile that one warp writes: they are a TMA store of their own.
inline constexpr tma_tile_form landed_form{warpgroup_rows / sum_fragments::warps};

/// Shared memory of this sink, behind that of the pipeline.
template <tile_config config>
struct landed_sums {
  /// Bytes of the 16-bit partials of a warp in a tile.
  static constexpr int strip_bytes = config.block_n / 8 * sum_fragments::lanes * 8;

  alignas(128) std::byte zeros[strip_bytes];
  /// By group, epilogue buffer and warp: whether the warp's rows there are complete sums.
  bool added[mma_warpgroups][config.epilogue_buffers][sum_fragments::warps];
};

/// A sink: partial results go from the registers of the MMA warpgroups to the owners of their rows,
/// through shared memory and TMA if one rank owns all rows of a warpgroup. What arrives is added
/// either by CTAs of their own, or by the MMA warpgroups: after each tile, as far as its partials
/// have arrived, and the rest at the end.
struct owner_sums {
  template <tile_config config>
  static constexpr std::size_t own_bytes = can_stage(config) ? sizeof(landed_sums<config>) : 0;

  struct arguments {
    /// This rank's rows in the copies of C that get their sums, in the order of hops: TMA tiles of
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

/// Arguments of the GEMM that sums over ranks.
using summed_io = gemm_io<local_source, owner_sums, sum_adders>;
/// Arguments of a kernel that only adds.
using adding_io = comm_io<sum_adders>;

}  // namespace untax::gpu
