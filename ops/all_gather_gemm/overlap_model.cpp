#include <algorithm>

#include "ops/all_gather_gemm/device_plan.hpp"

namespace untax {
namespace {

// Measured on 4 H200.

/// Cycles until the first chunk has arrived.
constexpr double first_arrival_cycles = 20'000;
/// Bytes a cycle that a block sends as TMA tiles beside a GEMM: to one peer, or to several with one
/// read. Then the bytes that all blocks send together.
constexpr double tma_tile_rate = 16;
constexpr double fan_out_rate = 20;
/// Beside senders and arrivals, the reads of a tile take longer than in a GEMM alone, the more so
/// the more bytes are read for each product. The time grows by this constant divided by the columns
/// of a tile, as a part of the whole.
constexpr double contention_columns = 24;

class timing {
 public:
  timing(const gather_plan& plan, double sent_bytes)
      : plan_(plan),
        order_(plan.gemm.schedule),
        peers_(std::max(plan.protocol.world - 1, 1)),
        alone_(plan.gemm.cycles) {
    if (plan.protocol.world > 1 && !plan.gemm.config.swap_ab)
      alone_ *= 1 + contention_columns / plan.gemm.config.block_n;
    // Data that blocks send while they multiply cost every plan the same.
    if (!plan.tma_tiles || plan.who == gather_senders::epilogue_warps) return;
    const bool by_k = plan.segment_rows == 0 && plan.sources.size() > 1;
    const bool to_all = (plan.protocol.fan_out || by_k) && peers_ > 1;
    const double each = to_all ? fan_out_rate : tma_tile_rate;
    sending_ = sent_bytes / std::min(plan.protocol.senders * each, link_bytes_per_cycle);
  }

  [[nodiscard]] double cycles() const {
    if (order_.segments == 1)
      return sending_ > 0 ? std::max(alone_, first_arrival_cycles + sending_) : alone_;
    const double k_block = alone_ / order_.most_k_blocks();
    double last = 0;
    for (int cluster = 0; cluster < order_.clusters; ++cluster) {
      double now = 0;
      for (auto w = order_.first(cluster); w.valid(); w = order_.next(cluster, w)) {
        now = std::max(now, came(w.tile, w.begin)) + k_block * (w.end - w.begin);
        now = std::max(now, came(w.tile, w.end));
      }
      last = std::max(last, now);
    }
    return last;
  }

 private:
  /// The time when the columns before a k-block have arrived, for the rows of a tile. The rows of a
  /// raster group, which are multiplied at the same time, arrive together.
  [[nodiscard]] double came(int tile, int k_block) const {
    const int width = order_.m_tiles / order_.segments;
    const int x = order_.at(tile).m;
    const int hop = x / width;
    if (hop == 0) return 0;
    const double raster_groups = ceil_div(width, order_.raster_group);
    const int raster_rows = x % width / order_.raster_group;
    const double part = (raster_rows + 1.0 * k_block / order_.k_blocks) / raster_groups;
    const double to_one = sending_ / peers_;
    return first_arrival_cycles +
           (plan_.protocol.fan_out ? part * sending_ : (hop - 1 + part) * to_one);
  }

  const gather_plan& plan_;
  gpu::tile_scheduler order_;
  int peers_;
  double alone_;  // in cycles, as `sending_`
  double sending_ = 0;
};

}  // namespace

double overlapped_cycles(const gather_plan& plan, double sent_bytes) {
  return timing(plan, sent_bytes).cycles();
}

}  // namespace untax
