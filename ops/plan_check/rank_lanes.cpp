#include "ops/plan_check/rank_lanes.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace untax::plan_check {
namespace {

using schedule::lane_program;

/// What one CTA does in a run: acquires what it reads as it is needed, each once, and multiplies.
class cta_lane {
 public:
  cta_lane(const gemm_lanes& gemm, int rank, const std::vector<int>& sums, std::uint64_t epoch,
           const program::sink& emit)
      : gemm_(gemm), rank_(rank), sums_(sums), epoch_(epoch), emit_(emit) {}

  void run(int cta) {
    if (gemm_.plan->config.cluster_split_k > 1) return split(cta);
    gpu::each_read(*gemm_.plan, cta, [&](const gpu::cta_read& of) {
      read(of, of.finishes);
      if (!of.finishes) return leave_sums(cta);
      if (of.begin == 0) return;
      const int first = gpu::tile_scheduler(gemm_.plan->schedule)
                            .first_contributor(of.cluster, {of.tile, of.begin, of.end});
      for (int cluster = first; cluster < of.cluster; ++cluster)
        await_sums(cta - (of.cluster - cluster) * cluster_blocks(gemm_.plan->config));
      gpu::cta_read rest = of;
      rest.begin = 0;
      rest.end = of.begin;
      multiply(rest);
    });
  }

 private:
  /// Of a cluster that splits k the first CTA along k finishes; the others read for it.
  void split(int cta) {
    const gpu::tile_config& c = gemm_.plan->config;
    const bool finishes = cta % cluster_blocks(c) / c.cluster == 0;
    gpu::each_read(*gemm_.plan, cta, [&](const gpu::cta_read& of) { read(of, finishes); });
    if (!finishes) return leave_sums(cta);
    for (int split = 1; split < c.cluster_split_k; ++split) {
      const int other = cta + split * c.cluster;
      await_sums(other);
      gpu::each_read(*gemm_.plan, other, [&](const gpu::cta_read& of) { multiply(of); });
    }
  }
  [[nodiscard]] int sums_of(int cta) const { return sums_[static_cast<std::size_t>(cta)]; }
  void await_sums(int cta) const { emit_(lane_program::awaits(rank_, sums_of(cta), epoch_)); }
  void leave_sums(int cta) const { emit_(lane_program::raises(rank_, sums_of(cta), epoch_)); }

  void read(const gpu::cta_read& of, bool finishes) {
    gemm_.read(of, epoch_, [&](const factors& f) {
      std::int64_t done = 0;   // so far it is multiplied
      std::int64_t known = 0;  // and so far it has been acquired
      for (const factors::ready& next : *f.waits) {
        bool waited = false;
        for (const factors::signal& signal : next.signals) {
          if (!acquired_.insert(signal.counter).second) continue;
          if (!waited) use(f, done, known, finishes);
          waited = true;
          emit_(step{.acquire = {.producer = signal.producer,
                                 .consumer = rank_,
                                 .number = signal.counter,
                                 .ready = signal.counter,
                                 .use = gemm_.sets.use_of(epoch_)}});
        }
        known = next.depth;
      }
      use(f, done, f.depth, finishes);
    });
  }
  /// What others have read, and acquired.
  void multiply(const gpu::cta_read& of) {
    gemm_.read(of, epoch_, [&](const factors& f) {
      std::int64_t done = 0;
      use(f, done, f.depth, true);
    });
  }

  void use(const factors& f, std::int64_t& done, std::int64_t to, bool finishes) {
    const std::int64_t depth = to - done;
    if (depth <= 0 || f.rows == 0 || f.cols == 0) return;
    step s{.rows = f.rows, .from = f.a};
    s.from.col += done;
    if (finishes) {
      multiply(s, f, done, depth);
    } else {
      s.what = action::copy;
      s.cols = depth;
      s.to = {operand::panel, rank_, 0, f.b.col + done};
      take_by_rank(s, f.c.row);
    }
    done = to;
  }
  void multiply(step s, const factors& f, std::int64_t done, std::int64_t depth) {
    const std::pair corner(f.c.row, f.c.col);
    if (corner_ != corner) made_ = 0;
    corner_ = corner;
    s.what = action::multiply;
    s.first = made_ == 0;
    made_ += depth;
    s.last = made_ == gemm_.k;
    s.cols = f.cols;
    s.depth = depth;
    s.weights = f.b;
    s.weights.col += done;
    s.to = f.c;
    if (!s.last) return emit_(s);
    corner_ = {-1, -1};
    gemm_.store(s, epoch_, emit_);
  }
  /// What is taken into a panel at once is of one rank.
  void take_by_rank(const step& all, std::int64_t row) const {
    if (gemm_.rows_of_ranks.empty()) return emit_(all);
    for (const range& part : gemm_.rows_of_ranks) {
      const std::int64_t begin = std::max(part.begin, row);
      const std::int64_t end = std::min(part.end(), row + all.rows);
      if (begin >= end) continue;
      step s = all;
      s.rows = end - begin;
      s.from.row += begin - row;
      s.to.row += begin - row;
      emit_(s);
    }
  }

  const gemm_lanes& gemm_;
  int rank_;
  const std::vector<int>& sums_;  // by CTA: the flag of what it leaves to others
  std::uint64_t epoch_;
  const program::sink& emit_;
  std::set<int> acquired_;
  std::pair<std::int64_t, std::int64_t> corner_{-1, -1};  // of the tile at hand
  std::int64_t made_ = 0;                                 // how much of its k
};

}  // namespace

void rank_lanes::add(const std::vector<int>& behind, const lane_program::lane& body, int raises) {
  lanes_.add([=, rank = rank_](std::uint64_t epoch, const program::sink& emit) {
    for (const int flag : behind) emit(lane_program::awaits(rank, flag, epoch));
    body(epoch, emit);
    if (raises >= 0) emit(lane_program::raises(rank, raises, epoch));
  });
}

std::vector<int> rank_lanes::add_gemm(const gemm_lanes& gemm,
                                      const std::vector<std::vector<int>>& behind) {
  const int ctas = gemm.plan->blocks();
  std::vector<int> sums;
  std::vector<int> done;
  for (int i = 0; i < ctas; ++i) {
    sums.push_back(flag());
    done.push_back(flag());
  }
  for (int cta = 0; cta < ctas; ++cta) {
    const auto at = static_cast<std::size_t>(cta);
    add(
        behind[at],
        [=, rank = rank_](std::uint64_t epoch, const program::sink& emit) {
          cta_lane(gemm, rank, sums, epoch, emit).run(cta);
        },
        done[at]);
  }
  return done;
}

}  // namespace untax::plan_check
