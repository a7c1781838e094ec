#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/merge.cuh"
#include "engines/gpu/attention/parts.cuh"
#include "engines/gpu/attention/sink.cuh"
#include "engines/gpu/attention/stream.cuh"
#include "engines/gpu/attention/variants/variants.hpp"
#include "engines/gpu/sm90/ptx/cluster.cuh"

namespace untax::gpu {

/// A combining or receiving warp. Combining warps merge the results of the streaming warps, and
/// combine split items. Receiving warps combine the rows that all ranks send. Called by all lanes.
template <class Element, int width, bool fixed_parts>
class combining_warp {
  using config = attention_config<width>;
  using work = attention_work<config::keys, fixed_parts>;
  using walk = segment_walk<config::keys, fixed_parts>;
  using merge = block_merge<Element, width>;

 public:
  /// Reads the lengths, so it must be constructed after the preceding kernels have ended.
  __device__ combining_warp(const attention_arguments& a, const merge& merged, std::uint64_t epoch)
      : a_(a),
        work_(a, work::read(a)),
        merge_(merged),
        epoch_(epoch),
        sink_(a, epoch),
        parts_(a, epoch) {}

  /// Does all work of the warp. Returns false if a wait failed.
  [[nodiscard]] __device__ bool operator()() const {
    note_kernel_begin(a_.run, combines() ? warp_role::merger : warp_role::receiver, epoch_);
    if constexpr (fixed_parts) {
      merge_own();
      return true;
    } else {
      if (combines()) return combine();
      return a_.shape.partials == dtype::f32 ? receive<float>() : receive<bf16>();
    }
  }

 private:
  /// The index of the calling warp among the warps that do not stream.
  [[nodiscard]] __device__ static int warp() {
    return static_cast<int>(threadIdx.x) / 32 - config::streaming;
  }
  [[nodiscard]] __device__ int combining() const { return config::combining_here(a_.receives()); }
  [[nodiscard]] __device__ bool combines() const { return warp() < combining(); }
  [[nodiscard]] __device__ walk segments() const { return walk(work_); }
  [[nodiscard]] __device__ std::int64_t first_row(const attention_item& item) const {
    return static_cast<std::int64_t>(item.index(a_.shape)) * a_.shape.group;
  }

  /// Merges the streaming warps' results, by segment. `warp`: index among the merging warps.
  __device__ void merge_segments(int warp) const {
    const action_note noted(a_.run, action::merge);
    int number = 0;
#pragma unroll 1
    for (walk at = segments(); at.valid(); at.advance(), ++number) {
      const std::int64_t row = first_row((*at).item);
      const bool whole = (*at).whole();
      const bool is_first = at.first();
      const auto keep = [&](int g, int column, const float(&elements)[4],
                            const float2& statistics) {
        if (whole) {
          sink_.put(row + g, column, elements, statistics);
        } else {
          parts_.leave(is_first, g, column, elements, statistics);
        }
      };
      merge_.take(number, warp, keep);
    }
  }

  /// The warp's watch. One warp of a block publishes its waits: a receiving one, if there is any.
  [[nodiscard]] __device__ lazy_watch watch_of(bool tells) const {
    const device_watch of_block(a_.run.world, static_cast<int>(blockIdx.x));
    return lazy_watch(tells ? of_block : of_block.silent());
  }

  /// The last of the combining warps merge the block's own results.
  __device__ void merge_own() const {
    const int others = combining() - config::merging_here(a_.receives());
    if (warp() >= others) merge_segments(warp() - others);
  }

  /// Merges the block's own results, then combines its share of split items. Does not wait for
  /// other ranks. Returns false if a wait failed.
  [[nodiscard]] __device__ bool combine() const {
    const int number = warp();
    const int warps = combining();
    merge_own();
    // With the sink `outbox`, the exchange kernel publishes the block's record.
    const bool tells = number == 0 && !a_.receives() && a_.sink != attention_sink::outbox;
    lazy_watch watch = watch_of(tells);
    int next = number;
#pragma unroll 1
    for (walk at = segments(); at.valid(); at.advance()) {
      const attention_segment& segment = *at;
      if (segment.whole()) continue;
      const part_share share(work_, segment.item, a_.shape.group, width);
#pragma unroll 1
      for (; next < share.units.count; next += warps) {
        // All blocks end at about the same time, so polling before this block's end is useless.
        merge_.await_end();
        if (!combine_unit(first_row(segment.item), share, share.units.first + next, watch))
          return false;
      }
      next -= share.units.count;
    }
    return true;
  }

  [[nodiscard]] __device__ bool combine_unit(std::int64_t row, const part_share& share, int unit,
                                             lazy_watch& watch) const {
    const int g = unit / share.turns;
    const int turn = unit % share.turns;
    float elements[4];
    float2 statistics;
    if (!parts_.combine(share, g, turn, static_cast<int>(row + g), watch, a_.run,
                        a_.run.operator_name(), elements, statistics))
      return false;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int column = 4 * (turn * share.fours + lane);
    if (lane < share.fours && column < width) sink_.put(row + g, column, elements, statistics);
    return true;
  }

  /// Receives this block's share of the rows from all ranks, and combines them. Senders wait for
  /// blocks of their own rank only, so ranks cannot deadlock. Returns false if a wait failed.
  template <class Wire>
  [[nodiscard]] __device__ bool receive() const {
    const int number = warp() - combining();
    lazy_watch watch = watch_of(number == 0);
    const rank_exchange<Element, Wire> exchange(a_, epoch_);
    return for_rows_of_block(
        work_, a_.shape, number, config::receiving,
        [&](std::int64_t row) { return exchange.await(row, watch); },
        [&](std::int64_t row) { return exchange.receive(row, watch); });
  }

  const attention_arguments& a_;
  work work_;
  const merge& merge_;
  std::uint64_t epoch_;
  item_sink<Element, width> sink_;
  item_parts<width> parts_;
};

/// Layout of a block's shared memory: rings, queries, and the results of streaming warps.
template <class Element, int width>
struct attention_memory {
  using config = attention_config<width>;
  using merge = block_merge<Element, width>;
  static constexpr std::size_t queries = config::ring_bytes;
  static constexpr std::size_t merged = queries + query_rows<width>::shared_bytes;
  static constexpr std::size_t bytes = merged + merge::shared_bytes;
  static_assert(bytes <= 227 << 10 && merged % 16 == 0);
};

/// The attention kernel.
template <class Element, int width, bool paged, bool fixed_parts>
__global__ void __launch_bounds__(attention_config<width>::most_threads, 1)
    attend(const __grid_constant__ attention_arguments a) {
  extern __shared__ __align__(128) std::byte shared[];
  using config = attention_config<width>;
  using memory = attention_memory<Element, width>;
  if (a.run.launch < 0) return;
  const query_rows<width> queries(a, shared + memory::queries);
  const block_merge<Element, width> merge(shared + memory::merged, a.shape.group,
                                          config::merging_here(a.receives()));
  const auto lengths = attention_work<config::keys, fixed_parts>::read(a);
  if (threadIdx.x == config::streaming_threads) {
    queries.init();
    merge.init();
  }
  __syncthreads();
  bool well = true;
  std::uint64_t epoch = 0;  // set in warps that do not stream
  if (static_cast<int>(threadIdx.x) < config::streaming_threads) {
    const auto rings = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    stream_warp<Element, width, paged, fixed_parts>(a, rings, queries, merge)(lengths);
  } else {
    griddepcontrol_wait();
    // Must follow the wait: the exchange kernel relies on all earlier kernels having ended.
    griddepcontrol_launch_dependents();
    epoch = a.run.epochs[blockIdx.x] + 1;
    // Earlier work of these warps would delay the first loads of the streaming warps.
    merge.await_streams();
    well = combining_warp<Element, width, fixed_parts>(a, merge, epoch)();
  }
  note_kernel_end(a.run);
  if (__syncthreads_and(well ? 1 : 0) != 0 && threadIdx.x == config::streaming_threads)
    a.run.epochs[blockIdx.x] = epoch;
}

template <int width>
[[nodiscard]] attention_kernel kernel_of_width(dtype type, bool paged, bool fixed_parts) {
  using config = attention_config<width>;
  const auto of_cache = [&]<class Element, bool fixed>() {
    return paged ? reinterpret_cast<const void*>(&attend<Element, width, true, fixed>)
                 : reinterpret_cast<const void*>(&attend<Element, width, false, fixed>);
  };
  const auto of_type = [&]<class Element>(Element /*zero*/) {
    return fixed_parts ? of_cache.template operator()<Element, true>()
                       : of_cache.template operator()<Element, false>();
  };
  return {type == dtype::bf16 ? of_type(bf16{}) : of_type(f16{}), config::fewest_threads,
          config::most_threads, attention_memory<bf16, width>::bytes};
}

}  // namespace untax::gpu
