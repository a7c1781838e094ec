#include "src/taxes/multiplication_alone.hpp"

#include <algorithm>

#include <untax/tile/shard.hpp>

#include "ops/common/random_matrix.hpp"

namespace untax {

multiplication_alone::multiplication_alone(const gemm_problem& problem, const gemm_share& share,
                                           const protocol_plan& plan)
    : rows_(share.b_of_rank > 0 ? problem.m : share.a_rows.size),
      depth_(share.b_cols.size),
      cols_(share.b_rows.size),
      type_(problem.type),
      workers_(std::max(plan.workers, 1)),
      a_(bytes(rows_, depth_)),
      c_(bytes(rows_, cols_)),
      whole_({rows_, cols_}),
      team_(workers_, launch_mode::graph, "multiplication alone", [](const error&) {}) {
  const pieces across{{0, cols_}, std::max<std::int64_t>(plan.tile_n, 1)};
  const pieces down{{0, rows_}, std::max<std::int64_t>(plan.tile_m, 1)};
  for (int j = 0; j < across.count(); ++j) {
    for (int i = 0; i < down.count(); ++i) tiles_.push_back({down.at(i), across.at(j)});
  }
  for (int worker = 0; worker < workers_; ++worker) {
    of_columns_.emplace_back(extent{rows_, sharding{cols_, workers_}.full()});
    of_tiles_.emplace_back(extent{down.step, across.step});
  }
  random_matrix{7}.fill(a(), {0, rows_}, {0, depth_});
}

std::size_t multiplication_alone::bytes(std::int64_t rows, std::int64_t cols) const {
  return static_cast<std::size_t>(rows * cols) * size_of(type_);
}

matrix multiplication_alone::a() noexcept { return {a_.data(), type_, rows_, depth_}; }

const_matrix multiplication_alone::result() const noexcept {
  return {c_.data(), type_, rows_, cols_};
}

void multiplication_alone::run(alone_way way, const matrix& weights) {
  host::operand_table operands;
  operands[operand::a] = {.base = a_.data(), .stride = depth_, .type = type_};
  operands[operand::b] = {
      .base = static_cast<std::byte*>(weights.data), .stride = weights.stride, .type = type_};
  operands[operand::c] = {.base = c_.data(), .stride = cols_, .type = type_};
  if (way == alone_way::one_call) {
    whole_.start_run();
    return multiply(whole_, {{0, rows_}, {0, cols_}}, operands);
  }
  team_.launch(workers_, [&](int worker) {
    const auto at = static_cast<std::size_t>(worker);
    if (way == alone_way::by_columns) {
      of_columns_[at].start_run();
      return multiply(of_columns_[at], {{0, rows_}, sharding{cols_, workers_}.of(worker)},
                      operands);
    }
    // Consecutive tiles, which share weights.
    const range mine = sharding{static_cast<std::int64_t>(tiles_.size()), workers_}.of(worker);
    of_tiles_[at].start_run();
    for (std::int64_t i = mine.begin; i < mine.begin + mine.size; ++i)
      multiply(of_tiles_[at], tiles_[static_cast<std::size_t>(i)], operands);
  });
}

void multiplication_alone::multiply(host::tile_math& math, const block& part,
                                    const host::operand_table& operands) {
  if (part.rows.size == 0 || part.cols.size == 0) return;
  math.perform(step{.what = action::multiply,
                    .first = true,
                    .last = true,
                    .rows = part.rows.size,
                    .cols = part.cols.size,
                    .depth = depth_,
                    .from = {operand::a, 0, part.rows.begin, 0},
                    .weights = {operand::b, 0, part.cols.begin, 0},
                    .to = {operand::c, 0, part.rows.begin, part.cols.begin}},
               operands);
}

}  // namespace untax
