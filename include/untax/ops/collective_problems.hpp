#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/core/reduction.hpp>
#include <untax/core/types.hpp>
#include <untax/flow/fault_tap.hpp>

namespace untax {

/// Every rank ends with all `count` elements, of which rank r has shard r: ceil(count / W), the
/// last shards are shorter or empty.
struct all_gather_problem {
  std::int64_t count = 0;  ///< elements of the result
  dtype type = dtype::bf16;
};

/// Rank r ends with shard r of the combination of all ranks' inputs: ceil(count / W) elements, the
/// last shards are shorter or empty. fp32, rank order, rounded once: bitwise reproducible.
struct reduce_scatter_problem {
  std::int64_t count = 0;  ///< elements of the input of each rank
  dtype type = dtype::bf16;
  reduction how = reduction::sum;
};

/// Every rank ends with the combination of all ranks' inputs. fp32, rank order, rounded once:
/// bitwise reproducible, and the same bits at every rank.
struct all_reduce_problem {
  std::int64_t count = 0;  ///< elements of the input, and of the result
  dtype type = dtype::bf16;
  reduction how = reduction::sum;
};

/// Every rank has a part for every rank, in rank order, and ends with the parts that the ranks have
/// for it, in rank order. Parts have `count` elements each or, where `counts` is not empty, part
/// (from, to) has counts[from * W + to]; the matrix is the same at all ranks.
struct all_to_all_problem {
  std::int64_t count = 0;  ///< elements of each part
  dtype type = dtype::bf16;
  std::vector<std::int64_t> counts = {};
};

/// Every rank ends with the `count` elements of rank `root`.
struct broadcast_problem {
  std::int64_t count = 0;
  dtype type = dtype::bf16;
  int root = 0;
};

/// How the bytes of a collective travel between GPUs.
enum class wire_kind : std::uint8_t {
  automatic,
  stores,   ///< ordinary stores into rooms; the only one of the host
  bulk,     ///< TMA, into rooms
  packets,  ///< stores that carry their own flag: least latency, twice the bytes
};

[[nodiscard]] constexpr std::string_view name_of(wire_kind wire) noexcept {
  constexpr std::string_view names[] = {"automatic", "stores", "bulk", "packets"};
  return names[static_cast<std::uint8_t>(wire)];
}

/// How the inputs of a reduction that goes directly come to whoever combines them.
enum class input_path : std::uint8_t {
  automatic,
  in_place,  ///< read where they lie
  rooms,     ///< sent, so that they may lie anywhere
};

/// How a collective is carried out. Zero means: let untax choose.
struct collective_options {
  /// bulk_synchronous, fused_sequential, fused_specialized or automatic.
  pattern how = pattern::automatic;
  /// all_reduce and broadcast. 1: everything goes straight to everybody, for few bytes. 2: each
  /// element goes to one rank, which passes it on (reduced, if need be).
  int phases = 0;
  /// Of the host only: on GPUs a run is launched eagerly, or captured in a graph, by its caller.
  launch_mode launch = launch_mode::graph;
  wire_kind wire = wire_kind::automatic;
  int workers = 0;  ///< of a rank, blocks on a GPU; each has its own chunks
  /// The problem's count is a capacity: a run takes any count from 0 to it, the same at all ranks,
  /// each in its own best way; the arrays say how many. Not with unequal parts.
  bool varying_count = false;
  std::int64_t chunk_bytes = 0;  ///< that move as a whole, at most
  int depth = 0;                 ///< rooms in turn for chunks on their way between two workers
  /// With `direct`, of all_gather, all_to_all and broadcast: so many workers more, which do nothing
  /// but copy what stays at a rank.
  int keepers = 0;
  /// In fused_specialized: the lanes that a worker serves which only takes out of rooms.
  int serves = 0;
  /// What peers touch lies in symmetric memory (`world::allocate`), at the same offset at all
  /// ranks, also where a rank has no elements: the input of reductions, the result of all but
  /// reduce_scatter. Then peers write results where they belong and read inputs where they lie,
  /// without rooms. A run on memory that is new to it waits for all ranks to compare offsets, but
  /// not while its stream is being captured.
  bool direct = false;
  /// Of reductions with `direct`. With rooms only results have to be symmetric; a reduce_scatter,
  /// and an all_reduce in one phase, then do without `direct`.
  input_path inputs = input_path::automatic;
  std::shared_ptr<fault_tap> faults = nullptr;  ///< for tests, on the host
};

/// What a protocol needs to know beside the problem. All values are positive. Plain, so that it can
/// be handed to kernels.
struct collective_plan {
  int world = 1;
  int rank = 0;
  pattern how = pattern::fused_sequential;
  wire_kind wire = wire_kind::stores;
  int phases = 1;
  int workers = 1;
  std::int64_t chunk = 1;  ///< elements
  int depth = 2;
  bool direct = false;  ///< between the callers' own memory, without rooms
  bool pushes = false;  ///< `direct`, but for inputs, which are sent through rooms
  int keepers = 0;      ///< workers beside those that only copy what stays at the rank
  int serves = 1;       ///< lanes of a worker of fused_specialized that only takes out of rooms
  /// Where kernels run any count: what goes from a rank to another has so many elements at most. 0:
  /// all runs have the same count.
  std::int64_t most = 0;
};

}  // namespace untax
