#include "src/taxes/cuda/overlap_work.hpp"

#include "engines/gpu/matrix/matrix.hpp"
#include "src/taxes/pattern_figure.hpp"

namespace untax {
namespace {

constexpr std::uint64_t seed = 11;

std::size_t memory_for(std::int64_t bytes) {
  return static_cast<std::size_t>(round_up<std::int64_t>(bytes, 512));
}

}  // namespace

overlap_work::overlap_work(world& w, const operator_entry& entry, const gemm_problem& problem,
                           stream_ref stream)
    : world_(&w.stable_view()),
      entry_(entry),
      problem_(problem),
      share_(entry.share(problem, w.size(), w.rank())),
      operands_(share_, problem, seed, stream) {
  right_.emplace(entry_, problem, w.size(), w.rank());
  right_->compute(seed, stream);
  wait_for(stream, "making inputs failed");
}

int overlap_work::plan(pattern how, std::int64_t capacity) {
  operator_options options;
  options.varying_rows = capacity > 0;
  options.constant_weights = weights_are_constant;
  options.how = how;
  gemm_problem planned_for = problem_;
  if (capacity > 0) planned_for.m = capacity;
  planned op{entry_.make(*world_, planned_for, options), {}};
  op.c = op.op->result();
  op.c.rows = problem_.m;
  if (op.c.data == nullptr) op.c = operands_.c();
  ops_.push_back(std::move(op));
  return static_cast<int>(ops_.size()) - 1;
}

void overlap_work::plan_parts(stream_ref stream) {
  const std::int64_t m = problem_.m;
  const std::int64_t n = share_.b_rows.size;
  const std::int64_t k = share_.b_cols.size;
  const dtype type = problem_.type;
  const auto size = static_cast<std::int64_t>(size_of(type));
  if (n > 0 && k > 0) {
    multiplied_ = bulk::scratch(memory_for(m * k * size));
    product_ = bulk::scratch(memory_for(m * n * size));
    gpu::fill_normal({multiplied_.data(), type, m, k}, seed, {0, m}, {0, k}, stream);
    own_gemm_.emplace(gpu::gemm_shape{m, n, k, type});
    library_gemm_.emplace(bulk::library_product{m, n, k, type, type});
    library_gemm_->settle();
  }
  if (entry_.sums_to) {
    plan_reduction();
  } else {
    plan_gather();
  }
}

/// NCCL's reduction of all partial results, in their type. NCCL needs equal parts at all owners.
void overlap_work::plan_reduction() {
  const sharding rows{problem_.m, world_->size()};
  const bool everywhere = entry_.sums_to == reduce_target::everywhere;
  const dtype type = partials_type(problem_);
  const std::int64_t own = (everywhere ? problem_.m : rows.full()) * problem_.n;
  const std::int64_t row_count = everywhere ? own : own * rows.parts;
  const auto size = static_cast<std::int64_t>(size_of(type));
  sent_ = bulk::scratch(memory_for(row_count * size));
  received_ = bulk::scratch(memory_for(own * size));
  ranks_ = bulk::communicator_of(*world_);
  transfer_ = [this, everywhere, own, type](stream_ref stream) {
    if (everywhere)
      return ranks_->all_reduce(sent_.data(), received_.data(), own, type, reduction::sum, stream);
    ranks_->reduce_scatter(sent_.data(), received_.data(), own, type, reduction::sum, stream);
  };
}

/// NCCL's gather: of A if the operator gathers it, else of the columns of C.
void overlap_work::plan_gather() {
  const gemm_problem& p = problem_;
  const auto size = static_cast<std::int64_t>(size_of(p.type));
  const bool rows = entry_.gathers && p.gather == gather_axis::rows;
  const std::int64_t moved = entry_.gathers ? p.k : p.n;
  gather_.emplace(*world_, sharding{p.m * moved * size, world_->size(),
                                    (rows ? p.k : p.m * shard_granularity) * size});
  received_ = bulk::scratch(memory_for(gather_->bytes()));
  transfer_ = [this](stream_ref stream) {
    const void* own = received_.data(static_cast<std::size_t>(gather_->own_at()));
    gather_->run(entry_.gathers ? operands_.a().data : own, received_.data(), stream);
  };
}

void overlap_work::run(int number, int i, stream_ref stream) const {
  const planned& p = ops_[static_cast<std::size_t>(number)];
  p.op->run(operands_.a(), operands_.weights(i), p.c, stream);
}
void overlap_work::run_own_gemm(int i, stream_ref stream) const {
  if (own_gemm_)
    own_gemm_->run(multiplied_.data(), operands_.weights(i).data, product_.data(), stream);
}
void overlap_work::run_library_gemm(int i, stream_ref stream) const {
  if (library_gemm_)
    library_gemm_->run(multiplied_.data(), operands_.weights(i).data, product_.data(), stream);
}
void overlap_work::run_transfer(stream_ref stream) const { transfer_(stream); }

double overlap_work::error_of(int number, stream_ref stream,
                              const std::function<void()>& launch) const {
  const planned& p = ops_[static_cast<std::size_t>(number)];
  gpu::fill_nan(p.c.data, p.c.span_bytes(), stream);
  wait_for(stream, "poisoning the result failed");
  world_->barrier();
  launch();
  return right_->error_of(as_const(p.c), stream);
}

pattern overlap_work::pattern_of(int number) const {
  return ops_[static_cast<std::size_t>(number)].op->plan().how;
}

const std::string& overlap_work::explanation_of(int number) const {
  return ops_[static_cast<std::size_t>(number)].op->explain();
}

}  // namespace untax
