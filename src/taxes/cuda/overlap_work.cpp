#include "src/taxes/cuda/overlap_work.hpp"

#include <algorithm>

#include "engines/sm90/matrix/matrix.hpp"

namespace untax {
namespace {

/// Weights go round in so much memory: more than three times L2.
constexpr std::int64_t rotated_bytes = std::int64_t{200} << 20;
constexpr std::uint64_t seed = 11;

std::int64_t bytes_of(std::int64_t rows, std::int64_t cols, dtype type) {
  return rows * cols * static_cast<std::int64_t>(size_of(type));
}

std::size_t memory_for(std::int64_t bytes) {
  return static_cast<std::size_t>(round_up<std::int64_t>(bytes, 512));
}

}  // namespace

overlap_work::overlap_work(world& w, const operator_entry& entry, const gemm_problem& problem,
                           stream_ref stream)
    : world_(&w),
      entry_(entry),
      problem_(problem),
      share_(entry.share(problem, w.size(), w.rank())) {
  const dtype type = problem.type;
  const std::int64_t one = bytes_of(share_.b_rows.size, problem.k, type);
  places_ = static_cast<int>(
      std::clamp<std::int64_t>(rotated_bytes / std::max<std::int64_t>(one, 1) + 1, 1, 8));
  a_memory_ = bulk::scratch(memory_for(bytes_of(share_.a_rows.size, share_.a_cols.size, type)));
  b_memory_ = bulk::scratch(memory_for(one) * static_cast<std::size_t>(places_));
  c_memory_ = bulk::scratch(memory_for(bytes_of(share_.c_rows.size, share_.c_cols.size, type)));
  a_ = {a_memory_.data(), type, share_.a_rows.size, share_.a_cols.size};
  c_ = {c_memory_.data(), type, share_.c_rows.size, share_.c_cols.size};
  for (int i = places_ - 1; i >= 0; --i) {
    const const_matrix b = weights(i);
    fill_device_inputs(share_, seed + static_cast<std::uint64_t>(i), a_,
                       {const_cast<void*>(b.data), type, b.rows, b.cols}, stream);
  }
  right_.emplace(problem, share_);
  right_->compute(seed, stream);
  wait_for(stream, "making inputs failed");
}

const_matrix overlap_work::weights(int i) const {
  const std::int64_t rows = share_.b_rows.size;
  const std::size_t one = memory_for(bytes_of(rows, problem_.k, problem_.type));
  return {b_memory_.data(one * static_cast<std::size_t>(i % places_)), problem_.type, rows,
          problem_.k};
}

int overlap_work::plan(pattern how) {
  operator_options options;
  options.how = how;
  planned made{entry_.make(*world_, problem_, options), {}};
  made.c = made.op->result();
  if (made.c.data == nullptr) made.c = c_;
  ops_.push_back(std::move(made));
  return static_cast<int>(ops_.size()) - 1;
}

void overlap_work::plan_parts(stream_ref stream) {
  const gemm_problem& p = problem_;
  const std::int64_t whole_bytes = bytes_of(p.m, p.k, p.type);
  whole_a_ = bulk::scratch(memory_for(whole_bytes));
  sm90::fill_normal({whole_a_.data(), p.type, p.m, p.k}, seed, {0, p.m}, {0, p.k}, stream);
  if (const std::int64_t n = share_.b_rows.size; n > 0) {
    own_gemm_.emplace(sm90::gemm_shape{p.m, n, p.k, p.type});
    library_gemm_.emplace(bulk::library_product{p.m, n, p.k, p.type, p.type});
    library_gemm_->settle();
  }
  const auto size = static_cast<std::int64_t>(size_of(p.type));
  const bool rows = entry_.gathers && p.gather == gather_axis::rows;
  const std::int64_t moved = entry_.gathers ? p.k : p.n;
  gather_.emplace(*world_, sharding{p.m * moved * size, world_->size(),
                                    (rows ? p.k : p.m * shard_granularity) * size});
  gathered_ = bulk::scratch(memory_for(gather_->bytes()));
}

void overlap_work::run(int number, int i, stream_ref stream) const {
  const planned& one = ops_[static_cast<std::size_t>(number)];
  one.op->run(as_const(a_), weights(i), one.c, stream);
}
void overlap_work::run_own_gemm(int i, stream_ref stream) const {
  if (own_gemm_) own_gemm_->run(whole_a_.data(), weights(i).data, c_.data, stream);
}
void overlap_work::run_library_gemm(int i, stream_ref stream) const {
  if (library_gemm_) library_gemm_->run(whole_a_.data(), weights(i).data, c_.data, stream);
}
void overlap_work::run_gather(stream_ref stream) const {
  const void* own = gathered_.data(static_cast<std::size_t>(gather_->own_at()));
  gather_->run(entry_.gathers ? a_.data : own, gathered_.data(), stream);
}

double overlap_work::error_of(int number, stream_ref stream,
                              const std::function<void()>& launch) const {
  const planned& one = ops_[static_cast<std::size_t>(number)];
  sm90::fill_nan(one.c.data, one.c.span_bytes(), stream);
  wait_for(stream, "poisoning the result failed");
  world_->barrier();
  launch();
  return right_->error_of(as_const(one.c), stream);
}

const std::string& overlap_work::explanation_of(int number) const {
  return ops_[static_cast<std::size_t>(number)].op->explain();
}

}  // namespace untax
