#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/sm90/attention/loader.cuh"
#include "engines/sm90/attention/merge.cuh"
#include "engines/sm90/attention/sink.cuh"
#include "engines/sm90/attention/variants/variants.hpp"

namespace untax::sm90 {

/// One block: streams its share of the tiles, and sees to the items that it completes.
template <class Element, int width>
class attention_block {
  using config = attention_config<width>;
  using walk = segment_walk<config::keys>;

 public:
  __device__ attention_block(const attention_arguments& a, std::byte* shared)
      : a_(a),
        work_(a.shape, a.memory.lengths),
        shared_(shared),
        results_(reinterpret_cast<float*>(shared + config::ring_bytes), a.shape.group),
        flag_(reinterpret_cast<int*>(shared + config::shared_bytes - 16)),
        epoch_(a.run.epochs[blockIdx.x] + 1),
        sink_(a, epoch_) {}

  __device__ void operator()() {
    bool well = true;
    if (static_cast<int>(blockIdx.x) < work_.blocks()) {
      stream();
      if (a_.sink == attention_sink::ranks && a_.ranks > 1) well = collect();
    }
    if (__syncthreads_and(well ? 1 : 0) != 0 && threadIdx.x == 0)
      a_.run.epochs[blockIdx.x] = epoch_;
  }

 private:
  __device__ void stream() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const auto ring = static_cast<std::uint32_t>(
        __cvta_generic_to_shared(shared_ + warp * config::stages * config::tile_bytes));
    walk segments(work_, static_cast<int>(blockIdx.x));
    tile_loader<width> loader(a_, segments, warp);
#pragma unroll 1
    for (int i = 0; i + 1 < config::stages; ++i) loader.load(ring + i * config::tile_bytes);
    std::uint32_t stage = 0;
    std::uint32_t ahead = (config::stages - 1) * config::tile_bytes;
    warp_attention<Element, width> mine;
    for (; segments.valid(); segments.advance()) {
      const attention_segment segment = *segments;
      const int length = segment.item.length;
      mine.start(a_, segment.item);
      for (int tile = segment.begin + warp; tile < segment.end; tile += config::warps) {
        wait_for_copies<config::stages - 2>();
        __syncwarp();
        loader.load(ring + ahead);
        mine.take(ring + stage, length - tile * config::keys);
        ahead = stage;
        stage += config::tile_bytes;
        if (stage == config::stages * config::tile_bytes) stage = 0;
      }
      mine.finish();
      end_segment(segments, mine);
    }
    wait_for_copies<0>();
  }

  __device__ void end_segment(const walk& segments, warp_attention<Element, width>& mine) {
    const attention_segment& segment = *segments;
    results_(mine);
    bool complete = true;
    if (!segment.whole()) {
      const segment_merge<width> merge(a_, work_);
      complete = merge(results_.region(1), segment, segments.first(), flag_);
    }
    if (segments.first()) first_is_mine_ = complete;
    if (segments.last()) last_is_mine_ = complete;
    if (complete) sink_.put(results_.region(1), segment.item);
    __syncthreads();
  }

  /// All that this block has to send is sent.
  [[nodiscard]] __device__ bool collect() {
    device_watch watch(a_.run.world, static_cast<int>(blockIdx.x));
    if (threadIdx.x >= 32) watch = watch.silent();
    for (walk segments(work_, static_cast<int>(blockIdx.x)); segments.valid(); segments.advance()) {
      if (segments.first() && !first_is_mine_) continue;
      if (segments.last() && !last_is_mine_) continue;
      if (!sink_.receive((*segments).item, watch)) return false;
    }
    return true;
  }

  const attention_arguments& a_;
  attention_work<config::keys> work_;
  std::byte* shared_;
  block_merge<Element, width> results_;
  int* flag_;
  std::uint64_t epoch_;
  item_sink<Element, width> sink_;
  bool first_is_mine_ = false;
  bool last_is_mine_ = false;
};

template <class Element, int width>
__global__ void __launch_bounds__(attention_config<width>::threads, 1)
    attend(const __grid_constant__ attention_arguments arguments) {
  extern __shared__ __align__(128) std::byte shared[];
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
