#include "ops/all_gather_gemm/plan_time.hpp"

#include <algorithm>

namespace untax {
namespace {

// Measured on 4 H200.

/// Until something has come.
constexpr double first_arrival_cycles = 20'000;
/// Bytes a cycle of a block that sends boxes beside a GEMM: to one peer, and to several that each
/// is read once for; and of all together.
constexpr double box_rate = 16;
constexpr double spread_rate = 20;
constexpr double link_rate = 190;
/// Beside movers and what comes from peers, what a tile of so many columns reads takes longer than
/// in a GEMM alone, the more so the more it is for each product: in parts of the whole, times the
/// columns.
constexpr double crowded_columns = 24;

class timing {
 public:
  timing(const gather_plan& plan, double sent_bytes)
      : plan_(plan),
        order_(plan.gemm.schedule),
        peers_(std::max(plan.protocol.world - 1, 1)),
        alone_(plan.gemm.cycles) {
    if (plan.protocol.world > 1 && !plan.gemm.config.swapped)
      alone_ *= 1 + crowded_columns / plan.gemm.config.columns;
    // What blocks that multiply move costs every plan as much.
    if (!plan.boxes || plan.who == gather_movers::storers) return;
    const bool by_k = plan.segment_rows == 0 && plan.sources.size() > 1;
    const bool to_all = (plan.protocol.spread || by_k) && peers_ > 1;
    const double each = to_all ? spread_rate : box_rate;
    sending_ = sent_bytes / std::min(plan.protocol.movers * each, link_rate);
  }

  [[nodiscard]] double cycles() const {
    if (order_.segments == 1)
      return sending_ > 0 ? std::max(alone_, first_arrival_cycles + sending_) : alone_;
    const double slice = alone_ / most_slices();
    double last = 0;
    for (int cluster = 0; cluster < order_.clusters; ++cluster) {
      double now = 0;
      for (auto w = order_.first(cluster); w.valid(); w = order_.next(cluster, w)) {
        now = std::max(now, came(w.tile, w.begin)) + slice * (w.end - w.begin);
        now = std::max(now, came(w.tile, w.end));
      }
      last = std::max(last, now);
    }
    return last;
  }

 private:
  [[nodiscard]] int most_slices() const {
    int most = 1;
    for (int cluster = 0; cluster < order_.clusters; ++cluster) {
      int slices = 0;
      for (auto w = order_.first(cluster); w.valid(); w = order_.next(cluster, w))
        slices += w.end - w.begin;
      most = std::max(most, slices);
    }
    return most;
  }

  /// When those columns of a tile's rows have come that are before a slice. Rows that are
  /// multiplied at the same time, a band, come together.
  [[nodiscard]] double came(int tile, int slice) const {
    const int width = order_.x_tiles / order_.segments;
    const int x = order_.x_of(tile);
    const int hop = x / width;
    if (hop == 0) return 0;
    const double bands = ceil_div(width, order_.band);
    const int band = x % width / order_.band;
    const double part = (band + 1.0 * slice / order_.slices) / bands;
    const double to_one = sending_ / peers_;
    return first_arrival_cycles +
           (plan_.protocol.spread ? part * sending_ : (hop - 1 + part) * to_one);
  }

  const gather_plan& plan_;
  const sm90::tile_schedule& order_;
  int peers_;
  double alone_;  // cycles, like the next one
  double sending_ = 0;
};

}  // namespace

double cycles_beside_movers(const gather_plan& plan, double sent_bytes) {
  return timing(plan, sent_bytes).cycles();
}

}  // namespace untax
