#pragma once

#include "engines/sm90/gemm/block.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// Weights behind those that the ring holds, for L2 to read while A has not come: it has nothing
/// else to do then, and afterwards they are the sooner there. In the order of the block's work, a
/// stage at a time; by all lanes of the loader's warp.
template <tile_config config, class Traffic>
class weights_ahead {
 public:
  __device__ weights_ahead(const block_view<config>& block, const Traffic& traffic)
      : block_(block),
        traffic_(traffic),
        leads_(threadIdx.x % 32 == 0),
        work_(block.arguments.schedule.first(block.cluster)) {
    slice_ = work_.begin;
  }

  /// Asks for the next stage that lies at least `ahead` slices behind the one that is number
  /// `from` in the order of the block's work. False if there is none, or enough has been asked for.
  __device__ bool ask(int from, int ahead) {
    while (work_.valid() && number_ < from + ahead) advance();
    if (!work_.valid() || number_ >= from + ahead + most * together) return false;
    if (leads_) {
      const stretch here = traffic_.stretch_of(block_.a_begin(work_), slice_);
      for (int i = 0; i < together; ++i)
        prefetch_box(*here.b, {(slice_ + i - here.first) * slice_depth, block_.x_begin(work_)});
    }
    __syncwarp();
    advance();
    return true;
  }

 private:
  static constexpr int together = stage_slices(config);
  /// Stages: of all blocks about half of what L2 holds.
  static constexpr int most = 12;

  __device__ void advance() {
    slice_ += together;
    number_ += together;
    if (slice_ < work_.end) return;
    work_ = block_.arguments.schedule.next(block_.cluster, work_);
    slice_ = work_.begin;
  }

  const block_view<config>& block_;
  const Traffic& traffic_;
  bool leads_;
  tile_work work_;
  int slice_;
  int number_ = 0;
};

}  // namespace untax::sm90
