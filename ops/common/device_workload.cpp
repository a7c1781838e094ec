#include "ops/common/device_workload.hpp"

#include "engines/bulk/library_gemm.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "ops/common/deviation.hpp"

namespace untax {
namespace {

/// Additions and multiplications for which a plain loop takes some tenths of a second.
constexpr double most_plain_operations = 1e12;

std::uint64_t seed_of_a(std::uint64_t seed) { return seed * 2; }
std::uint64_t seed_of_b(std::uint64_t seed, const gemm_share& share) {
  return seed * 2 + 1 + (share.b_of_rank << 40U);
}

std::size_t bytes_of(range rows, range cols, dtype type) {
  return static_cast<std::size_t>(rows.size * cols.size) * size_of(type);
}

}  // namespace

void fill_device_inputs(const gemm_share& share, std::uint64_t seed, const matrix& a,
                        const matrix& weights, stream_ref stream) {
  gpu::fill_normal(a, seed_of_a(seed), share.a_rows, share.a_cols, stream);
  gpu::fill_normal(weights, seed_of_b(seed, share), share.b_rows, share.b_cols, stream);
}

device_reference::device_reference(const operator_entry& entry, const gemm_problem& problem,
                                   int world, int rank)
    : problem_(problem),
      share_(entry.share(problem, world, rank)),
      tolerance_(tolerance_of(entry, problem)),
      element_share_(element_share_of(entry, problem, world)),
      a_memory_(bytes_of(share_.c_rows, {0, problem.k}, problem.type)),
      b_memory_(bytes_of(share_.c_cols, {0, problem.k}, problem.type)),
      c_memory_(bytes_of(share_.c_rows, share_.c_cols, dtype::f32)),
      sums_(sizeof(gpu::comparison)),
      a_(a_memory_.data(), problem.type, share_.c_rows.size, problem.k),
      b_(b_memory_.data(), problem.type, share_.c_cols.size, problem.k),
      right_(c_memory_.data(), dtype::f32, share_.c_rows.size, share_.c_cols.size) {
  gpu::load_matrix_kernels();
  const double operations = 2.0 * static_cast<double>(right_.rows) *
                            static_cast<double>(right_.cols) * static_cast<double>(problem.k);
  if (operations > most_plain_operations && bulk::blas().there)
    product_.emplace(
        bulk::library_product{right_.rows, right_.cols, problem.k, problem.type, dtype::f32});
}

void device_reference::compute(std::uint64_t seed, stream_ref stream) {
  if (right_.empty()) return;
  const range depth{0, problem_.k};
  gpu::fill_normal(a_, seed_of_a(seed), share_.c_rows, depth, stream);
  gpu::fill_normal(b_, seed_of_b(seed, share_), share_.c_cols, depth, stream);
  if (product_) return product_->run(a_.data, b_.data, right_.data, stream);
  gpu::multiply_plainly(as_const(a_), as_const(b_), right_, stream);
}

double device_reference::error_of(const const_matrix& c, stream_ref stream) const {
  // With N(0, 1) inputs a square is expected to be k.
  const auto square = static_cast<double>(problem_.k);
  deviation found(tolerance_);
  found.add(gpu::compare(c, as_const(right_), element_share_, square, sums_.data(), stream),
            static_cast<double>(right_.rows * right_.cols), square);
  return found.relative_error();
}

device_workload::device_workload(world& w, const operator_entry& entry, const gemm_problem& problem,
                                 const operator_options& options, std::uint64_t seed)
    : problem_(problem),
      share_(entry.share(problem, w.size(), w.rank())),
      right_(entry, problem, w.size(), w.rank()) {
  a_ = own(a_memory_, share_.a_rows, share_.a_cols);
  b_ = own(b_memory_, share_.b_rows, share_.b_cols);
  op_ = entry.make(w, problem, options);
  c_ = op_->result();
  if (c_.data == nullptr) c_ = own(c_memory_, share_.c_rows, share_.c_cols);
  refresh(seed);
  poison_result();
  // No rank may run while another one still allocates.
  w.barrier();
}

matrix device_workload::own(bulk::scratch& memory, range rows, range cols) const {
  memory = bulk::scratch(bytes_of(rows, cols, problem_.type));
  return {memory.data(), problem_.type, rows.size, cols.size};
}

void device_workload::refresh(std::uint64_t seed) {
  refresh_on(stream_.get(), seed);
  stream_.wait("making inputs failed");
}

void device_workload::refresh_on(stream_ref stream, std::uint64_t seed) {
  seed_ = seed;
  fill_device_inputs(share_, seed, a_, b_, stream);
}

void device_workload::poison_result() {
  gpu::fill_nan(c_.data, c_.span_bytes(), stream_.get());
  stream_.wait("poisoning the result failed");
}

double device_workload::relative_error() const {
  right_.compute(seed_, stream_.get());
  return right_.error_of(as_const(c_), stream_.get());
}

}  // namespace untax
