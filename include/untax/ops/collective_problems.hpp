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

/// Every rank ends with all `count` elements, of which rank r has shard r: ceil(count / W)
/// elements, W being the number of ranks. The last shards are shorter or empty.
struct all_gather_problem {
  std::int64_t count = 0;  ///< elements of the result
  dtype type = dtype::bf16;
};

/// Rank r ends with shard r of the combination of all ranks' inputs: ceil(count / W) elements. The
/// last shards are shorter or empty. Elements are combined in fp32 in rank order and rounded once,
/// so the result is bitwise reproducible.
struct reduce_scatter_problem {
  std::int64_t count = 0;  ///< elements of the input of each rank
  dtype type = dtype::bf16;
  reduction how = reduction::sum;
};

/// Every rank ends with the combination of all ranks' inputs. Elements are combined in fp32 in rank
/// order and rounded once, so the result is bitwise reproducible and the same at every rank.
struct all_reduce_problem {
  std::int64_t count = 0;  ///< elements of the input, and of the result
  dtype type = dtype::bf16;
  reduction how = reduction::sum;
};

/// Every rank has a part for every rank, in rank order, and ends with the parts that the ranks have
/// for it, in rank order. Parts have `count` elements each. If `counts` is not empty, part (from,
/// to) has counts[from * W + to] elements instead; this matrix is the same at all ranks.
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

/// How the bytes of a collective are sent between GPUs.
enum class wire_kind : std::uint8_t {
  automatic,
  stores,   ///< ordinary stores into rooms; the only one of the host
  bulk,     ///< TMA, into rooms
  packets,  ///< stores that carry their own flag: the least latency, but twice the bytes unless
            ///< data are combined
};

/// The name of `wire` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(wire_kind wire) noexcept {
  constexpr std::string_view names[] = {"automatic", "stores", "bulk", "packets"};
  return names[static_cast<std::uint8_t>(wire)];
}

/// How the rank that combines elements gets the inputs of a reduction with `direct`.
enum class input_path : std::uint8_t {
  automatic,
  in_place,  ///< the rank reads inputs where they are
  rooms,     ///< ranks send inputs through rooms, so inputs may be anywhere
};

/// The name of `path` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(input_path path) noexcept {
  constexpr std::string_view names[] = {"automatic", "in_place", "rooms"};
  return names[static_cast<std::uint8_t>(path)];
}

/// Options of a collective. A value of 0 lets untax choose. Options that change the plan have to be
/// the same at all ranks.
struct collective_options {
  /// bulk_synchronous, fused_sequential, fused_specialized or automatic.
  pattern how = pattern::automatic;
  /// Of all_reduce and broadcast. 1: every rank sends to every rank, which is for few bytes. 2:
  /// each element goes to one rank, which passes it on, reduced if the collective is an all_reduce.
  int phases = 0;
  /// Of the host only. On GPUs the caller launches a run eagerly, or captures it in a graph.
  launch_mode launch = launch_mode::graph;
  wire_kind wire = wire_kind::automatic;
  int workers = 0;  ///< workers of a rank, on GPUs blocks; each has its own chunks
  /// If true, the problem's count is a capacity: a run takes any count from 0 to the capacity, the
  /// same at all ranks, and has a plan for its count. The sizes of the arrays determine the count.
  /// all_to_all needs equal parts for it.
  bool varying_count = false;
  std::int64_t chunk_bytes = 0;  ///< the most bytes that are sent as a whole
  int depth = 0;                 ///< rooms used in turn for the chunks between two workers
  /// Of all_gather, all_to_all and broadcast with `direct`: the number of additional workers that
  /// only copy the data that stay at a rank.
  int keepers = 0;
  /// In fused_specialized: the number of lanes for which one worker takes data out of rooms.
  int serves = 0;
  /// The memory that peers access is symmetric (`world::allocate`), at the same offset at all
  /// ranks, also where a rank has no elements. This is the input of reductions, and the result of
  /// all but reduce_scatter and an all_reduce in one phase. Then peers write results to their final
  /// place and read inputs where they are, without rooms. A run on memory that is new to it waits
  /// for all ranks to compare offsets, but not while its stream is being captured.
  bool direct = false;
  /// The path of the inputs of reductions with `direct`. With `rooms` only results have to be
  /// symmetric: a reduce_scatter, or an all_reduce in one phase, then runs without `direct`.
  input_path inputs = input_path::automatic;
  std::shared_ptr<fault_tap> faults = nullptr;  ///< for tests, on the host
};

/// The plan of a protocol, besides the problem. All values are positive. It is plain data, so that
/// it can be passed to kernels.
struct collective_plan {
  int world = 1;
  int rank = 0;
  pattern how = pattern::fused_sequential;
  wire_kind wire = wire_kind::stores;
  int phases = 1;
  int workers = 1;
  std::int64_t chunk = 1;  ///< elements of a chunk
  int depth = 2;
  bool direct = false;  ///< between the callers' own memory, without rooms
  bool pushes = false;  ///< `direct`, but inputs are sent through rooms
  int keepers = 0;      ///< additional workers that only copy the data that stay at the rank
  int serves = 1;       ///< lanes for which a worker of fused_specialized takes data out of rooms
  /// The most elements that a rank sends to another, if kernels run any count. 0: all runs have the
  /// same count.
  std::int64_t most = 0;
};

}  // namespace untax
