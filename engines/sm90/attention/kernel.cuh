#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/sm90/attention/loader.cuh"
#include "engines/sm90/attention/merge.cuh"
#include "engines/sm90/attention/parts.cuh"
#include "engines/sm90/attention/queries.cuh"
#include "engines/sm90/attention/sink.cuh"
#include "engines/sm90/attention/variants/variants.hpp"
#include "engines/sm90/ptx/cluster.cuh"

namespace untax::sm90 {

/// One block: streams its share of the tiles, and sees to its share of what several blocks have.
template <class Element, int width>
class attention_block {
  using config = attention_config<width>;
  using walk = segment_walk<config::keys>;

 public:
  __device__ attention_block(const attention_arguments& a, std::byte* shared)
      : a_(a),
        work_(a.shape, a.memory.lengths),
        ring_(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
        merge_(reinterpret_cast<float*>(shared + config::ring_bytes + 2 * config::query_bytes),
               a.shape.group),
        epoch_(a.run.epochs[blockIdx.x] + 1),
        sink_(a, epoch_),
        parts_(a, epoch_) {}

  __device__ void operator()() {
    bool well = true;
    if (static_cast<int>(blockIdx.x) < work_.blocks()) {
      if (warp() < config::streaming) {
        stream();
      } else if (a_.shape.partials == dtype::f32) {
        well = settle<float>();
      } else {
        well = settle<bf16>();
      }
    }
    if (__syncthreads_and(well ? 1 : 0) != 0 && threadIdx.x == 0)
      a_.run.epochs[blockIdx.x] = epoch_;
  }

 private:
  [[nodiscard]] __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  [[nodiscard]] __device__ walk segments() const {
    return walk(work_, static_cast<int>(blockIdx.x));
  }
  [[nodiscard]] __device__ std::int64_t first_row(const attention_item& item) const {
    return static_cast<std::int64_t>(item.index(a_.shape)) * a_.shape.group;
  }
  template <class Wire>
  [[nodiscard]] __device__ int flags() const {
    return a_.shape.group * partial_format<Wire>::flags(width);
  }

  __device__ void stream() {
    walk at = segments();
    if (!at.valid()) return;
    const query_rows<width> queries(a_, ring_ + config::ring_bytes);
    const std::uint32_t ring = ring_ + warp() * config::stages * config::tile_bytes;
    tile_loader<width> loader(a_, at, warp());
#pragma unroll 1
    for (int i = 0; i + 1 < config::stages; ++i) {
      loader.load(ring + i * config::tile_bytes);
      if (i == 0) queries.fetch((*at).item.index(a_.shape));
      commit_copies();
    }
    wait_for_copies<config::stages - 2>();
    merge_.synchronise();
    std::uint32_t stage = 0;
    std::uint32_t ahead = (config::stages - 1) * config::tile_bytes;
    warp_attention<Element, width> mine;
    for (; at.valid(); at.advance()) {
      const attention_segment segment = *at;
      const int length = segment.item.length;
      const bool another = !at.last();
      const int item = segment.item.index(a_.shape);
      mine.start(a_.shape, queries.at(item));
      if (another) queries.fetch(item + 1);
      int tile = segment.begin + warp();
      for (; tile < segment.end; tile += config::streaming) {
        wait_for_copies<config::stages - 2>();
        __syncwarp();
        loader.load(ring + ahead);
        commit_copies();
        mine.take(ring + stage, length - tile * config::keys);
        ahead = stage;
        stage += config::tile_bytes;
        if (stage == config::stages * config::tile_bytes) stage = 0;
      }
      mine.finish();
      if (another && tile < segment.begin + config::stages * config::streaming) {
        commit_copies();
        wait_for_copies<0>();  // fewer tiles than it takes to wait for the queries behind them
      }
      end(segment, at.first(), mine);
      if (another) merge_.synchronise();
    }
    wait_for_copies<0>();
  }

  __device__ void end(const attention_segment& segment, bool is_first,
                      const warp_attention<Element, width>& mine) {
    const std::int64_t row = first_row(segment.item);
    const bool whole = segment.whole();
    merge_(mine, [&](int g, int column, const float(&elements)[4], const float2& statistics) {
      if (whole) {
        sink_.put(row + g, column, elements, statistics);
      } else {
        parts_.leave(is_first, g, column, elements, statistics);
      }
    });
    if (!whole || a_.sink != attention_sink::flagged) return;
    merge_.synchronise();
    const int count = a_.shape.partials == dtype::f32 ? flags<float>() : flags<bf16>();
    std::uint64_t* const flags =
        a_.flags + static_cast<std::int64_t>(segment.item.index(a_.shape)) * count;
#pragma unroll 1
    for (int u = static_cast<int>(threadIdx.x); u < count; u += config::streaming_threads)
      cuda_memory::raise_release(flags[u], epoch_);
  }

  /// What else is to be done for the items of this block: the warps take its units in turn. Each
  /// sends what it has of an item before it waits for other ranks, and all of them take items in
  /// their order, so who waits for one waits for none behind it. Whether everything came.
  template <class Wire>
  [[nodiscard]] __device__ bool settle() {
    const bool receives = a_.sink == attention_sink::ranks && a_.ranks > 1;
    const rank_exchange<Element, Wire> exchange(a_, epoch_);
    const int first = warp() - config::streaming;
    const device_watch of_block(a_.run.world, static_cast<int>(blockIdx.x));
    seldom_watch watch(first > 0 ? of_block.silent() : of_block);
    int skipped = 0;
#pragma unroll 1
    for (walk at = segments(); at.valid(); at.advance()) {
      const attention_segment& segment = *at;
      const bool whole = segment.whole();
      if (whole && !receives) continue;
      const item_share share = share_of<Wire>(segment);
      const int begin = share.first + (first - skipped + config::settling) % config::settling;
      skipped = (skipped + share.last - share.first) % config::settling;
      if (begin >= share.last) continue;
      const std::int64_t row = first_row(segment.item);
#pragma unroll 1
      for (int u = begin; u < share.last && !whole; u += config::settling) {
        if (!combine<Wire>(row + u / share.turns, share, u / share.turns, u % share.turns, watch))
          return false;
      }
      if (!receives) continue;
      // Who has waited for other blocks need not wait long for other ranks.
      if (whole && !exchange.await(row, a_.shape.group, watch)) return false;
#pragma unroll 1
      for (int u = begin; u < share.last; u += config::settling) {
        if (!exchange.receive(row + u / share.turns, u % share.turns * share.packets, share.packets,
                              watch))
          return false;
      }
    }
    return true;
  }

  template <class Wire>
  [[nodiscard]] __device__ item_share share_of(const attention_segment& segment) const {
    using format = partial_format<Wire>;
    return {work_, segment, a_.shape.group, format::packets(width) - 1,
            item_parts<width>::at_once(format::columns)};
  }

  template <class Wire>
  [[nodiscard]] __device__ bool combine(std::int64_t row, const item_share& share, int g, int turn,
                                        seldom_watch& watch) const {
    using format = partial_format<Wire>;
    float elements[format::columns];
    float2 statistics;
    if (!parts_.combine(share, g, turn, static_cast<int>(row), watch, a_.run.operator_name(),
                        elements, statistics))
      return false;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int i = turn * share.packets + lane;
    if (lane < share.packets && i < format::packets(width) - 1)
      sink_.template put_packet<Wire>(row, i, elements, statistics);
    if (a_.sink != attention_sink::flagged) return true;
    __syncwarp();
    const int flag = turn * share.packets / format::packets_of_flag + lane;
    if (lane < share.packets / format::packets_of_flag && flag < format::flags(width))
      cuda_memory::raise_release(a_.flags[row * format::flags(width) + flag], epoch_);
    return true;
  }

  const attention_arguments& a_;
  attention_work<config::keys> work_;
  std::uint32_t ring_;
  block_merge<Element, width> merge_;
  std::uint64_t epoch_;
  item_sink<Element, width> sink_;
  item_parts<width> parts_;
};

template <class Element, int width>
__global__ void __launch_bounds__(attention_config<width>::threads, 1)
    attend(const __grid_constant__ attention_arguments arguments) {
  extern __shared__ __align__(128) std::byte shared[];
  await_kernels_before();
  // Not earlier: that of `flagged` relies on what came before this one.
  let_next_kernel_start();
  if (arguments.run.launch < 0) return;
  attention_block<Element, width>(arguments, shared)();
}

template <int width>
[[nodiscard]] attention_kernel kernel_of_width(dtype type) {
  using config = attention_config<width>;
  const void* function = type == dtype::bf16 ? reinterpret_cast<const void*>(&attend<bf16, width>)
                                             : reinterpret_cast<const void*>(&attend<f16, width>);
  return {function, config::threads, config::shared_bytes};
}

}  // namespace untax::sm90
