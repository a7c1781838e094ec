#pragma once

#include "engines/sm90/gemm/block.cuh"

namespace untax::sm90 {

/// What the loader's warp knows of how far A has come: from a scout, or by looking itself. In
/// slices of one stretch, for the rows that it reads for the work at hand; by all of its lanes.
template <tile_config config, class Traffic>
class arrivals {
 public:
  __device__ arrivals(const block_view<config>& block, Traffic& traffic)
      : block_(block), traffic_(traffic), told_(traffic.scouts()) {}

  /// Work whose rows of A begin at `row`.
  __device__ void begin(const tile_work& w, int row) {
    row_ = row;
    begin_ = w.begin;
  }
  __device__ void end(const tile_work& w) { before_ += w.end - w.begin; }

  /// Up to which slice, from `slice` to `end`.
  [[nodiscard]] __device__ int come(int slice, int end) {
    if (!told_) return traffic_.come(row_, block_.a_rows(), slice, end);
    const int there = block_.shared.arrived.count() - before_ + begin_;
    // A scout that moves first has not looked yet; what is the rank's own is there all the same.
    if (there <= slice) return traffic_.is_there(row_, slice) ? end : slice;
    return there < end ? there : end;
  }
  /// The same, some looks later if nothing has.
  [[nodiscard]] __device__ int come_soon(int slice, int end) {
    if (told_) block_.shared.arrived.await(number_of(slice + 1), looks);
    return come(slice, end);
  }
  /// Stages of weights to ask for before each look but the first. A look of its own takes longer.
  [[nodiscard]] __device__ int asked_for_each_look() const { return told_ ? 1 : 2; }
  __device__ void await(int slice, int end) {
    if (!told_) return traffic_.await(row_, block_.a_rows(), slice, end);
    block_.shared.arrived.await(number_of(end));
  }

 private:
  static constexpr poll_count looks = 4;

  /// How many have come when that slice is the first that has not.
  [[nodiscard]] __device__ int number_of(int slice) const { return before_ + slice - begin_; }

  const block_view<config>& block_;
  Traffic& traffic_;
  bool told_;
  int before_ = 0;  // slices of the work that is over
  int row_ = 0;     // of the work at hand, like the next one
  int begin_ = 0;
};

/// Where all of A is there.
template <tile_config config, class Traffic>
requires(!Traffic::waits) class arrivals<config, Traffic> {
 public:
  __device__ arrivals(const block_view<config>& /*block*/, Traffic& /*traffic*/) {}
  __device__ void begin(const tile_work& /*w*/, int /*row*/) {}
  __device__ void end(const tile_work& /*w*/) {}
};

}  // namespace untax::sm90
