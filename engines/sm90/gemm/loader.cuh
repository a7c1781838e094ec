#pragma once

#include <untax/core/types.hpp>

#include "engines/sm90/gemm/arrivals.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// Stages of weights that are asked for at once while A has not come; then it is one or two for
/// each look. What brings A goes through the same memory, and would queue behind more of them.
inline constexpr int asked_at_once = 5;
/// So many stages come as near as L2 when the ring is full: 35 MB of it, by all blocks, of tiles of
/// which a stage has 16 KB of weights. That takes the memory 8 us, and A has come by then.
inline constexpr int most_prefetched = 16;

/// One warp, of which one thread copies: brings slices of both operands into the ring, ahead of the
/// math. Each block reads its own rows of x, and its share of the rows of y for all that share
/// them. Where a stage takes the math little time, every instruction for it counts.
///
/// Weights are there before anybody's A is: while A has not come, the ring is filled with them, and
/// where x is weights, which takes as long as these take to read, some of L2; with the first ones,
/// where nobody writes them, already while the kernels ahead end.
template <tile_config config, class Traffic>
class slice_loader {
 public:
  /// `fetched`: what `fetch_early` of another one said.
  __device__ slice_loader(const block_view<config>& block, Traffic& traffic, int fetched = 0)
      : block_(block),
        traffic_(traffic),
        leads_(threadIdx.x % 32 == 0),
        arrivals_(block, traffic),
        ahead_(fetched) {}

  /// Asks for the weights of the first stages, `most` at most, and touches nothing else. Returns of
  /// how many.
  [[nodiscard]] __device__ int fetch_early(int most) {
    ring_cursor to = at_;
    tile_work w = block_.first();
    while (w.valid()) {
      const int a_row = block_.a_begin(w);
      const int b_row = block_.b_begin(w);
      for (int slice = w.begin; slice < w.end && ahead_ < most;) {
        const stretch from = traffic_.stretch_of(a_row, slice);
        const int end = from.end < w.end ? from.end : w.end;
        for (; slice < end && ahead_ < most; slice += together, ++ahead_) {
          if (leads_) {
            open(to);
            fetch_weights(to, from, b_row, slice);
          }
          to.template advance<config.stages>();
        }
      }
      if (ahead_ == most) break;  // what follows takes divisions to find
      w = block_.next(w);
    }
    __syncwarp();
    return ahead_;
  }

  __device__ void run() {
    if (!Traffic::waits && !Traffic::retires && !leads_) return;
    block_.each_work([&](const tile_work& w) { load(w); });
    if constexpr (Traffic::retires) {
      if (!traffic_.counts_readers()) return;
      if (leads_) await_math();
      __syncwarp();
      traffic_.retire();
    }
  }

 private:
  static constexpr int together = stage_slices(config);
  static_assert(!Traffic::brings || config.swapped, "rows of A are y");
  /// Of a stage, where they are all that comes by the copy engine.
  static constexpr std::uint32_t weight_bytes = together * tile_rows(config) * slice_depth * 2;
  /// Stages whose A has come that are still to be fetched when the loader looks for more: a look
  /// takes as long as the math takes for some of them.
  static constexpr int in_hand = 4;

  __device__ void load(const tile_work& w) {
    if (w.tile != tile_) {
      tile_ = w.tile;
      a_row_ = block_.a_begin(w);
      b_row_ = block_.b_begin(w);
    }
    const int a_row = a_row_;
    const int b_row = b_row_;
    arrivals_.begin(w, a_row);
    if constexpr (config.swapped) prefetched_ = w.begin;
    for (int slice = w.begin; slice < w.end;) {
      const stretch from = traffic_.stretch_of(a_row, slice);
      const int end = from.end < w.end ? from.end : w.end;
      int there = end;
      if constexpr (Traffic::waits) there = come(from, b_row, slice, end);
      while (slice < there) {
        int stages = (there - slice + together - 1) / together;
        if constexpr (Traffic::waits) {
          if (there < end) stages = stages > in_hand ? stages - in_hand : 1;
        }
        const int known = ahead_ < stages ? ahead_ : stages;
        if (leads_) fetch_both(from, b_row, slice, stages, known);
        ahead_ -= known;
        slice += stages * together;
        if constexpr (Traffic::waits) {
          if (slice < there && there < end)
            there = whole_stages(arrivals_.come(there, end), there, end);
        }
      }
    }
    arrivals_.end(w);
  }

  /// Up to which slice A has come: at least that of a stage. Asks for weights while it has not.
  __device__ int come(const stretch& from, int b_row, int slice, int end) {
    int there = whole_stages(arrivals_.come(slice, end), slice, end);
    int before_look = asked_at_once;
    while (there == slice && ask_for_weights(from, b_row, slice, end)) {
      if (--before_look > 0) continue;
      there = whole_stages(arrivals_.come_soon(slice, end), slice, end);
      before_look = arrivals_.asked_for_each_look();
    }
    if (there > slice) return there;
    there = slice + together < end ? slice + together : end;
    arrivals_.await(slice, there);
    return there;
  }
  /// Those of the first stage from `slice` on that has not been asked for: into the ring, or, when
  /// that is full, into L2. The stage before these stays with the math until it has the next one
  /// whole. False if there are enough.
  __device__ bool ask_for_weights(const stretch& from, int b_row, int slice, int end) {
    int next = slice + ahead_ * together;
    if (next >= end) return false;
    if (ahead_ < config.stages - 1) {
      if (leads_) fetch_ahead(from, b_row, next);
      __syncwarp();
      ++ahead_;
      return true;
    }
    if constexpr (config.swapped) {
      const int farthest = next + most_prefetched * together;
      next = prefetched_ > next ? prefetched_ : next;
      if (next >= (farthest < end ? farthest : end)) return false;
      if (leads_) prefetch_weights(from, b_row, next);
      prefetched_ = next + together;
      return true;
    } else {
      return false;
    }
  }
  [[nodiscard]] __device__ static int whole_stages(int there, int slice, int end) {
    return there == end ? end : slice + (there - slice) / together * together;
  }

  __device__ void fetch_ahead(const stretch& from, int b_row, int slice) {
    ring_cursor to = at_;
    for (int i = 0; i < ahead_; ++i) to.template advance<config.stages>();
    open(to);
    fetch_weights(to, from, b_row, slice);
  }

  /// So many stages, of which the first `known` have their weights already.
  __device__ void fetch_both(const stretch& from, int b_row, int slice, int stages, int known) {
    for (int i = 0; i < known; ++i, slice += together) {
      fetch_a(at_, from, slice);
      at_.template advance<config.stages>();
    }
    for (int i = known; i < stages; ++i, slice += together) {
      open(at_);
      fetch_weights(at_, from, b_row, slice);
      fetch_a(at_, from, slice);
      at_.template advance<config.stages>();
    }
  }

  /// Until everything that was fetched has been read.
  __device__ void await_math() {
    for (int i = 0; i < config.stages; ++i) {
      block_.shared.empty[at_.stage].wait(at_.parity ^ 1);
      at_.template advance<config.stages>();
    }
  }
  /// Gets a stage ready for what is fetched into it.
  __device__ void open(const ring_cursor& at) {
    block_.shared.empty[at.stage].wait(at.parity ^ 1);
    block_.shared.full[at.stage].arrive_and_expect(
        Traffic::brings ? weight_bytes : static_cast<std::uint32_t>(block_.arguments.stage_bytes));
  }
  __device__ void fetch_weights(const ring_cursor& to, const stretch& from, int row, int slice) {
    fetch<!config.swapped>(to, *from.b, {(slice - from.first) * slice_depth, row});
  }
  /// The same as near as L2.
  __device__ void prefetch_weights(const stretch& from, int row, int slice) {
#pragma unroll
    for (int i = 0; i < together; ++i)
      prefetch_box_once(*from.b, {(slice + i - from.first) * slice_depth, row});
  }
  __device__ void fetch_a(const ring_cursor& to, const stretch& from, int slice) {
    if constexpr (!Traffic::brings)
      fetch<config.swapped>(to, *from.a, {(slice - from.first) * slice_depth, from.a_row});
  }

  /// The slices of a stage, of y or of x.
  template <bool of_y>
  __device__ void fetch(const ring_cursor& to, const CUtensorMap& matrix, box_at from) {
    auto& here = block_.shared.stages[to.stage];
    stage_barrier& full = block_.shared.full[to.stage];
#pragma unroll
    for (int i = 0; i < together; ++i, from.x += slice_depth) {
      if constexpr (of_y) {
        std::byte* const own = here.y[i] + static_cast<int>(block_.x_place) *
                                               block_.arguments.y_rows * slice_depth * 2;
        constexpr auto everybody = (1U << config.cluster) - 1;
        if constexpr (config.cluster == 1) {
          fetch_box(own, matrix, from, full);
        } else {
          fetch_box(own, matrix, from, full,
                    static_cast<std::uint16_t>(everybody << (block_.piece * config.cluster)));
        }
      } else if constexpr (config.swapped) {
        // Nobody else reads these weights.
        fetch_box_once(here.x[i], matrix, from, full);
      } else {
        fetch_box(here.x[i], matrix, from, full);
      }
    }
  }

  const block_view<config>& block_;
  Traffic& traffic_;
  bool leads_;
  arrivals<config, Traffic> arrivals_;
  ring_cursor at_;
  int ahead_;           // stages from here on that have their weights already
  int prefetched_ = 0;  // weights before this slice, where they are x, are in L2 or on their way
  int tile_ = -1;       // of the work at hand, and where it begins: found once, by divisions
  int a_row_ = 0;
  int b_row_ = 0;
};

}  // namespace untax::sm90
