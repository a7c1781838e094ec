#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/merge.cuh"
#include "engines/gpu/attention/parts.cuh"
#include "engines/gpu/attention/queries.cuh"
#include "engines/gpu/attention/sink.cuh"
#include "engines/gpu/attention/tma_producer.cuh"
#include "engines/gpu/attention/variants/variants.hpp"
#include "engines/gpu/sm90/ptx/cluster.cuh"

namespace untax::gpu {

/// One block: streams its share of the tiles, and sees to its share of what several blocks have,
/// and of what comes from other ranks.
template <class Element, int width, bool paged>
class attention_block {
  using config = attention_config<width>;
  using walk = segment_walk<config::keys>;
  using merge = block_merge<Element, width>;
  static constexpr std::size_t merge_at = config::ring_bytes + query_rows<width>::shared_bytes;

 public:
  static constexpr std::size_t shared_bytes = merge_at + merge::shared_bytes;
  static_assert(shared_bytes <= 227 << 10 && merge_at % 16 == 0);

  __device__ attention_block(const attention_arguments& a, std::byte* shared)
      : a_(a),
        work_(a.shape, a.memory.lengths, static_cast<int>(gridDim.x)),
        ring_(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
        queries_(a, shared + config::ring_bytes),
        merge_(shared + merge_at, a.shape.group),
        epoch_(a.run.epochs[blockIdx.x] + 1),
        sink_(a, epoch_),
        parts_(a, epoch_) {}

  /// By one thread, before the block is.
  __device__ static void init(std::byte* shared, const attention_arguments& a) {
    query_rows<width>(a, shared + config::ring_bytes).init();
    merge(shared + merge_at, a.shape.group).init();
  }
  /// The warps that do not stream wait until the others have asked for what they begin with, which
  /// their own beginning would make later.
  __device__ static void let_streams_begin(std::byte* shared, const attention_arguments& a) {
    if (warp() >= config::streaming) merge(shared + merge_at, a.shape.group).await_streams();
  }

  __device__ void operator()() {
    bool well = true;
    note_kernel_begin(a_.run, role(), epoch_);
    if (static_cast<int>(blockIdx.x) >= work_.blocks()) {
      if (warp() < config::streaming) merge_.begin();
    } else {
      if (warp() < config::streaming) {
        stream();
      } else if (warp() < config::streaming + combining()) {
        well = combine();
      } else if (a_.shape.partials == dtype::f32) {
        well = receive<float>();
      } else {
        well = receive<bf16>();
      }
    }
    note_kernel_end(a_.run);
    if (__syncthreads_and(well ? 1 : 0) != 0 && threadIdx.x == 0)
      a_.run.epochs[blockIdx.x] = epoch_;
  }

 private:
  [[nodiscard]] __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  /// Warps that combine: all others, where none receives.
  [[nodiscard]] __device__ int combining() const {
    return static_cast<int>(blockDim.x) / 32 - config::streaming -
           (a_.receives() ? config::receiving : 0);
  }
  [[nodiscard]] __device__ warp_role role() const {
    if (warp() < config::streaming) return warp_role::streamer;
    return warp() < config::streaming + combining() ? warp_role::merger : warp_role::receiver;
  }
  [[nodiscard]] __device__ walk segments() const {
    return walk(work_, static_cast<int>(blockIdx.x));
  }
  [[nodiscard]] __device__ std::int64_t first_row(const attention_item& item) const {
    return static_cast<std::int64_t>(item.index(a_.shape)) * a_.shape.group;
  }
  __device__ void stream() {
    walk at = segments();
    if (!at.valid()) return merge_.begin();
    const action_note noted(a_.run, action::attend);
    const std::uint32_t ring = ring_ + warp() * config::stages * config::tile_bytes;
    tile_producer<width, paged> producer(a_, at, warp());
#pragma unroll 1
    for (int i = 0; i + 1 < config::stages; ++i) {
      producer.load(ring + i * config::tile_bytes);
      if (i == 0) queries_.fetch((*at).item.index(a_.shape), 0);
      commit_copies();
    }
    merge_.begin();
    wait_for_copies<config::stages - 2>();
    queries_.arrive();
    std::uint32_t stage = 0;
    std::uint32_t ahead = (config::stages - 1) * config::tile_bytes;
    int place = 0;
    warp_attention<Element, width> mine;
    for (int number = 0; at.valid(); at.advance(), ++number) {
      const attention_segment segment = *at;
      const int length = segment.item.length;
      const bool another = !at.last();
      queries_.await(number);
      mine.start(a_.shape, queries_.at(place));
      place = place + 1 < query_rows<width>::places ? place + 1 : 0;
      if (another) queries_.fetch(work_.index_behind(segment.item), place);
      // When it waits for tile `asked`, those queries are there.
      const int asked = segment.begin + warp() + (config::stages - 1) * config::streaming;
      int tile = segment.begin + warp();
      for (; tile < segment.end; tile += config::streaming) {
        wait_for_copies<config::stages - 2>();
        __syncwarp();
        if (tile == asked && another) queries_.arrive();
        producer.load(ring + ahead);
        commit_copies();
        mine.take(ring + stage, length - tile * config::keys);
        ahead = stage;
        stage += config::tile_bytes;
        if (stage == config::stages * config::tile_bytes) stage = 0;
      }
      mine.finish();
      if (another && tile <= asked) {
        commit_copies();
        wait_for_copies<0>();
        queries_.arrive();
      }
      merge_.leave(mine, number);
    }
    wait_for_copies<0>();
  }

  /// What the warps that stream leave, segment by segment, by one of those that merge.
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

  /// One warp of a block tells of its waits: who waits for other ranks, if anybody does.
  [[nodiscard]] __device__ lazy_watch watch_of(bool tells) const {
    const device_watch of_block(a_.run.world, static_cast<int>(blockIdx.x));
    return lazy_watch(tells ? of_block : of_block.silent());
  }

  /// The block's share of what several blocks have, as they have it; before that the last ones of
  /// these warps merge what this block has. Waits for no other rank. Whether everything came.
  [[nodiscard]] __device__ bool combine() const {
    const int number = warp() - config::streaming;
    const int warps = combining();
    const int others = warps - config::merging;
    if (number >= others) merge_segments(number - others);
    // The kernel behind, where there is one, has the block's record.
    const bool tells = number == 0 && !a_.receives() && a_.sink != attention_sink::outbox;
    lazy_watch watch = watch_of(tells);
    // Who has not merged comes while keys are read; whatever follows, at the end.
    bool early = number < others;
    int next = number;
#pragma unroll 1
    for (walk at = segments(); at.valid(); at.advance()) {
      const attention_segment& segment = *at;
      if (segment.whole()) continue;
      const part_share share(work_, segment.item, a_.shape.group, width);
#pragma unroll 1
      for (; next < share.units.count; next += warps) {
        if (!combine_unit(first_row(segment.item), share, share.units.first + next, early, watch))
          return false;
        early = false;
      }
      next -= share.units.count;
    }
    return true;
  }

  [[nodiscard]] __device__ bool combine_unit(std::int64_t row, const part_share& share, int unit,
                                             bool early, lazy_watch& watch) const {
    const int g = unit / share.turns;
    const int turn = unit % share.turns;
    float elements[4];
    float2 statistics;
    if (!parts_.combine(share, g, turn, early, static_cast<int>(row + g), watch, a_.run,
                        a_.run.operator_name(), elements, statistics))
      return false;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int column = 4 * (turn * share.fours + lane);
    if (lane < share.fours && column < width) sink_.put(row + g, column, elements, statistics);
    return true;
  }

  /// What all ranks have of the rows that this block sees to. They send it without waiting for
  /// anybody but their own blocks. Whether everything came.
  template <class Wire>
  [[nodiscard]] __device__ bool receive() const {
    const int number = warp() - config::streaming - combining();
    lazy_watch watch = watch_of(number == 0);
    const rank_exchange<Element, Wire> exchange(a_, epoch_);
    return for_rows_of_block(
        work_, a_.shape, number, config::receiving,
        [&](std::int64_t row) { return exchange.await(row, watch); },
        [&](std::int64_t row) { return exchange.receive(row, watch); });
  }

  const attention_arguments& a_;
  attention_work<config::keys> work_;
  std::uint32_t ring_;
  query_rows<width> queries_;
  merge merge_;
  std::uint64_t epoch_;
  item_sink<Element, width> sink_;
  item_parts<width> parts_;
};

template <class Element, int width, bool paged>
__global__ void __launch_bounds__(attention_config<width>::most_threads, 1)
    attend(const __grid_constant__ attention_arguments arguments) {
  extern __shared__ __align__(128) std::byte shared[];
  using block = attention_block<Element, width, paged>;
  if (threadIdx.x == 0) block::init(shared, arguments);
  __syncthreads();
  griddepcontrol_wait();
  // Not earlier: that behind `outbox` relies on what came before this one.
  griddepcontrol_launch_dependents();
  if (arguments.run.launch < 0) return;
  block::let_streams_begin(shared, arguments);
  block(arguments, shared)();
}

template <int width>
[[nodiscard]] attention_kernel kernel_of_width(dtype type, bool paged) {
  using config = attention_config<width>;
  const auto of_type = [&]<class Element>(Element /*zero*/) {
    return paged ? reinterpret_cast<const void*>(&attend<Element, width, true>)
                 : reinterpret_cast<const void*>(&attend<Element, width, false>);
  };
  return {type == dtype::bf16 ? of_type(bf16{}) : of_type(f16{}), config::fewest_threads,
          config::most_threads, attention_block<bf16, width, false>::shared_bytes};
}

}  // namespace untax::gpu
