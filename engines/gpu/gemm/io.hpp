#pragma once

#include <cstdint>
#include <limits>

#include <cuda.h>

#include <untax/core/activation.hpp>
#include <untax/core/host_device.hpp>
#include <untax/core/types.hpp>

#include "engines/gpu/copy/moved_operands.hpp"
#include "engines/gpu/gemm/owned_rows.hpp"
#include "engines/gpu/gemm/schedule.hpp"

namespace untax::gpu {

/// The bits of a sum that has not arrived: one of the NaNs.
inline constexpr std::uint32_t no_sum_bits = 0xffffffffU;

/// The rows of an operand in its last tile, if that is not full.
struct operand_tail {
  CUtensorMap map;                              ///< TMA tiles of `rows` rows
  int begin = std::numeric_limits<int>::max();  ///< the first row of that tile
  int rows = 0;                                 ///< rows of it that each block loads
};

/// The matrices of a launch, as TMA descriptors.
struct gemm_matrices {
  CUtensorMap a;  ///< TMA tiles of `a_tma_tile_rows` rows, 64 elements deep
  CUtensorMap b;  ///< TMA tiles of `b_tma_tile_rows` rows, 64 elements deep
  CUtensorMap c;  ///< TMA tiles of `c_tma_tile_rows` rows, `c_tma_tile_columns` elements wide
  /// Tiles that are not full, of operands that are ready from the start, and of the own shard of an
  /// A that is gathered. TMA takes several times as long for a row that does not exist as for one
  /// that does. The part of a stage that is not loaded keeps its old contents, which affect no
  /// element of C.
  operand_tail m_tail;
  operand_tail n_tail;
};

/// Arguments of a launch, apart from its `gemm_io`.
struct gemm_arguments : gemm_matrices {
  tile_scheduler schedule;
  float* partials = nullptr;  ///< `partial_bytes` per block; all `no_sum_bits` between launches
  dtype type = dtype::bf16;   ///< of A, B and C
  int multicast_rows = 0;     ///< rows of the N operand that each block loads and multicasts
  int stage_bytes = 0;        ///< bytes that TMA loads into each block per stage
  int early_stages = 0;       ///< stages whose weights are loaded before the previous kernels end
};

/// A launch in which no other rank takes part.
struct alone : launch_trace {
  /// Whether the launch only serves to load the kernel.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr bool dry() { return false; }
  /// The number of communication CTAs. They are the first CTAs, and do not multiply.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int comm_cta_count() { return 0; }
};

/// A launch between ranks. The protocol sees the CTAs that multiply as one worker.
template <class Protocol>
struct with_peers {
  using protocol = Protocol;

  Protocol how;
  moved_operands moved;
  int senders = 0;      ///< senders of the protocol at this rank
  int comm_ctas = 0;    ///< communication CTAs in the grid that multiplies
  int multiplying = 0;  ///< CTAs that multiply

  [[nodiscard]] UNTAX_HOST_DEVICE bool dry() const { return moved.run.launch < 0; }
  [[nodiscard]] UNTAX_HOST_DEVICE int comm_cta_count() const { return comm_ctas; }
};

/// Arguments of a kernel that only sends.
template <class Senders>
struct comm_io : Senders::run, Senders::arguments {};

/// Arguments of the GEMM kernel beside its matrices: the source of A, the sink of C, and the
/// senders. Each of the three is a class with
///
///   struct arguments           passed by value
///   template <class Io> view   made from the arguments by each thread: see the concepts in io.cuh
///
/// A sink may use `own_bytes<config>` of shared memory, behind that of the pipeline. Senders define
/// `run`, which all three share: `alone`, or the arguments of a launch between ranks.
template <class Source, class Sink, class Senders>
struct gemm_io : comm_io<Senders>, Source::arguments, Sink::arguments {
  using source_type = Source;
  using sink_type = Sink;
  using senders_type = Senders;
  using run = typename Senders::run;
  using comm = comm_io<Senders>;
};

/// The rows of a GEMM whose columns are those of gate and up, in groups of eight in turn:
/// out = function(gate + bias) * (up + bias).
struct gated_output {
  void* out = nullptr;         ///< [rows, columns], without gaps
  const void* bias = nullptr;  ///< of all columns of the GEMM, or null
  int rows = 0;
  int columns = 0;  ///< a multiple of 8
  activation_function function = activation_function::swiglu;
};

/// A source: A and B in this GPU's memory, ready from the start.
struct local_source {
  struct arguments {
    row_rotation rotation;
  };
  template <class Io>
  class view;
};
/// A sink: C in this GPU's memory or, if `gated.out` is set, function(gate) * up of C, with half as
/// many columns.
struct local_sink {
  struct arguments {
    gated_output gated;
  };
  template <class Io>
  class view;
};
/// For a kernel without senders.
struct no_senders {
  using run = alone;
  struct arguments {};
  template <class Io>
  class view;
};
/// The GEMM of one GPU.
using local_io = gemm_io<local_source, local_sink, no_senders>;

}  // namespace untax::gpu
