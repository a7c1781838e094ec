#include "ops/plan_check/gemm_lanes.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "ops/common/nowhere.hpp"

namespace untax::plan_check {
namespace {

using schedule::lane_program;

/// One CTA in a run: it acquires the data that it reads, each once and when needed, and multiplies.
class cta_lane {
 public:
  cta_lane(const gemm_lanes& gemm, int rank, const std::vector<int>& sums, std::uint64_t epoch,
           const program::sink& emit)
      : gemm_(gemm), rank_(rank), sums_(sums), epoch_(epoch), emit_(emit) {}

  void run(int cta) {
    work_.cta = cta;
    if (gemm_.plan->config.cluster_split_k > 1) return split(cta);
    gpu::each_read(*gemm_.plan, cta, [&](const gpu::cta_read& tile_read) {
      begin_work();
      read(tile_read, tile_read.finishes);
      if (!tile_read.finishes) return leave_sums(cta);
      if (tile_read.begin == 0 || gemm_.k == 0) return;
      const int first = gpu::tile_scheduler(gemm_.plan->schedule)
                            .first_contributor(tile_read.cluster,
                                               {tile_read.tile, tile_read.begin, tile_read.end});
      for (int cluster = first; cluster < tile_read.cluster; ++cluster)
        await_sums(cta - (tile_read.cluster - cluster) * cluster_blocks(gemm_.plan->config));
      gpu::cta_read rest = tile_read;
      rest.begin = 0;
      rest.end = tile_read.begin;
      multiply(rest);
    });
    begin_work();
  }

 private:
  void begin_work() {
    ++work_.number;
    if (gemm_.before) gemm_.before(work_, epoch_, emit_);
  }
  /// In a cluster that splits k the first CTA along k finishes the tile; the others read for it.
  void split(int cta) {
    const gpu::tile_config& c = gemm_.plan->config;
    const bool finishes = cta % cluster_blocks(c) / c.cluster == 0;
    gpu::each_read(*gemm_.plan, cta,
                   [&](const gpu::cta_read& tile_read) { read(tile_read, finishes); });
    if (!finishes) return leave_sums(cta);
    for (int split = 1; split < c.cluster_split_k; ++split) {
      const int other = cta + split * c.cluster;
      await_sums(other);
      gpu::each_read(*gemm_.plan, other,
                     [&](const gpu::cta_read& tile_read) { multiply(tile_read); });
    }
  }
  [[nodiscard]] int sums_of(int cta) const { return sums_[static_cast<std::size_t>(cta)]; }
  void await_sums(int cta) const { emit_(lane_program::awaits(rank_, sums_of(cta), epoch_)); }
  void leave_sums(int cta) const { emit_(lane_program::raises(rank_, sums_of(cta), epoch_)); }

  void read(const gpu::cta_read& tile_read, bool finishes) {
    gemm_.read(tile_read, epoch_, [&](const factors& f) {
      std::int64_t done = 0;  // the part that is multiplied so far
      for (const factors::wait& next : f.waits) {
        const auto counter = static_cast<std::size_t>(next.counter);
        if (counter < acquired_.size() && acquired_[counter]) continue;
        use(f, done, std::min(next.depth, f.depth), finishes);
        if (acquired_.empty() && gemm_.before_waits) gemm_.before_waits(work_, epoch_, emit_);
        if (counter >= acquired_.size()) acquired_.resize(counter + 1);
        acquired_[counter] = true;
        emit_(acquires(next.producer, rank_, next.counter, gemm_.sets.use_of(epoch_)));
      }
      use(f, done, f.depth, finishes);
    });
  }
  /// Multiplies data that other CTAs have read and acquired.
  void multiply(const gpu::cta_read& tile_read) {
    gemm_.read(tile_read, epoch_, [&](const factors& f) {
      std::int64_t done = 0;
      use(f, done, f.depth, true);
    });
  }

  void use(const factors& f, std::int64_t& done, std::int64_t to, bool finishes) {
    const std::int64_t depth = to - done;
    if (f.rows == 0 || f.cols == 0 || depth < 0) return;
    if (depth == 0 && (gemm_.k > 0 || !finishes)) return;  // over no columns products are zero
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
    gemm_.store(work_, s, epoch_, emit_);
  }
  /// A copy into a panel takes rows of one rank only.
  void take_by_rank(const step& whole, std::int64_t row) const {
    if (gemm_.rows_of_ranks.empty()) return emit_(whole);
    for (const range& part : gemm_.rows_of_ranks) {
      const std::int64_t begin = std::max(part.begin, row);
      const std::int64_t end = std::min(part.end(), row + whole.rows);
      if (begin >= end) continue;
      step s = whole;
      s.rows = end - begin;
      s.from.row += begin - row;
      s.to.row += begin - row;
      emit_(s);
    }
  }

  const gemm_lanes& gemm_;
  int rank_;
  const std::vector<int>& sums_;  // by CTA: the flag that its sums are ready for another CTA
  std::uint64_t epoch_;
  const program::sink& emit_;
  cta_work work_{.number = -1};
  std::vector<bool> acquired_;                            // by counter
  std::pair<std::int64_t, std::int64_t> corner_{-1, -1};  // of the current tile
  std::int64_t made_ = 0;                                 // the part of its k that is done
};

}  // namespace

step acquires(int producer, int consumer, int counter, std::uint64_t use) {
  step s;
  s.acquire = {
      .producer = producer, .consumer = consumer, .number = counter, .ready = counter, .use = use};
  return s;
}

void operand_space::add(operand role, int rank, std::int64_t address, const extent& size) {
  regions_.push_back({{role, rank, 0, 0}, address, size});
}

place operand_space::at(std::int64_t address, std::int64_t cols) const {
  for (const region& r : regions_) {
    const std::int64_t element = (address - r.address) / 2;
    if (address < r.address || element >= r.size.rows * r.size.cols) continue;
    const place target{r.first.of, r.first.rank, element / r.size.cols, element % r.size.cols};
    if (target.col + cols <= r.size.cols) return target;
  }
  return {};
}

place operand_space::rectangle(const void* first, std::int64_t stride, std::int64_t rows,
                               std::int64_t cols) const {
  const std::int64_t begin = nowhere::address(first);
  const place top = at(begin, cols);
  const place bottom = at(begin + (rows - 1) * stride * 2, cols);
  const bool whole = bottom.of == top.of && bottom.rank == top.rank &&
                     bottom.row == top.row + rows - 1 && bottom.col == top.col;
  return whole ? top : place{};
}

place operand_space::rectangle(const gpu::matrix_at& in, std::int64_t row, std::int64_t col,
                               std::int64_t rows, std::int64_t cols) const {
  return rectangle(static_cast<const std::byte*>(in.data) + (row * in.stride + col) * 2, in.stride,
                   rows, cols);
}

comm::step_source operand_space::moved_steps(const gpu::moved_operands& operands,
                                             const comm::step_source& steps) const {
  return [=, memory = *this](int sender, std::uint64_t epoch, const program::sink& emit) {
    steps(sender, epoch, [&](step s) {
      if (s.what == action::copy) {
        s.from = memory.moved(operands, s.from, s);
        s.to = memory.moved(operands, s.to, s);
      }
      emit(s);
    });
  };
}

factors operand_space::multiplied(const gpu::cta_read& tile_read, const gpu::matrix_at& a,
                                  std::int64_t a_row, const gpu::matrix_at& b,
                                  const gpu::matrix_at& c, std::int64_t c_row,
                                  const range& columns) const {
  factors f;
  f.rows = std::clamp<std::int64_t>(c.rows - c_row, 0, tile_read.a.count);
  f.cols = std::clamp<std::int64_t>(std::min(b.rows, c.columns) - tile_read.b.begin, 0,
                                    tile_read.b.count);
  // Both matrices are zero beyond their ends.
  f.depth =
      std::clamp<std::int64_t>(std::min(a.columns, b.columns) - columns.begin, 0, columns.size);
  if (f.rows == 0 || f.cols == 0 || f.depth == 0) return f;
  // Rows beyond A are zero, too. Rows of C are not.
  if (a_row + f.rows <= a.rows) f.a = rectangle(a, a_row, columns.begin, f.rows, f.depth);
  f.b = rectangle(b, tile_read.b.begin, columns.begin, f.cols, f.depth);
  f.c = rectangle(c, c_row, tile_read.b.begin, f.rows, f.cols);
  return f;
}

gemm_lanes partial_products(const gpu::gemm_plan& plan, const schedule::operand_extents& operands,
                            int rank, const gpu::row_rotation& order) {
  gemm_lanes lanes;
  lanes.plan = &plan;
  lanes.k = operands.a.cols;
  lanes.read = [=](const gpu::cta_read& tile_read, std::uint64_t, const auto& visit) {
    const std::int64_t row = order.rotated(static_cast<int>(tile_read.a.begin));
    const std::int64_t begin = std::int64_t{tile_read.begin} * gpu::block_k;
    const std::int64_t end = std::min(std::int64_t{tile_read.end} * gpu::block_k, operands.a.cols);
    visit(factors{
        .rows = std::clamp<std::int64_t>(operands.a.rows - row, 0, tile_read.a.count),
        .cols = std::clamp<std::int64_t>(operands.b.rows - tile_read.b.begin, 0, tile_read.b.count),
        .depth = std::max<std::int64_t>(end - begin, 0),
        .a = {operand::a, rank, row, begin},
        .b = {operand::b, rank, tile_read.b.begin, begin},
        .c = {operand::product, rank, 0, 0},
        .waits = {}});
  };
  return lanes;
}

extent tile_extent(const gpu::tile_config& c) {
  const std::int64_t rows = tile_rows(c);
  return c.swap_ab ? extent{c.block_n, rows} : extent{rows, c.block_n};
}

std::vector<int> add_gemm(schedule::lane_program& lanes, const gemm_lanes& gemm,
                          std::vector<std::vector<int>> behind) {
  // All lanes share one description of the GEMM.
  const auto how = std::make_shared<const gemm_lanes>(gemm);
  const auto sums = std::make_shared<std::vector<int>>();
  for (int cta = 0; cta < gemm.plan->blocks(); ++cta) sums->push_back(lanes.add_sums_flag());
  const auto lane = [=, rank = lanes.rank()](int cta, std::uint64_t epoch,
                                             const program::sink& emit) {
    cta_lane(*how, rank, *sums, epoch, emit).run(cta);
  };
  return lanes.add_each(gemm.plan->blocks(), lane, std::move(behind));
}

}  // namespace untax::plan_check
