#include "ops/common/device_reference.hpp"

#include "engines/bulk/library_gemm.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "ops/common/deviation.hpp"
#include "ops/common/gemm_inputs.hpp"
#include "ops/common/workload.hpp"

namespace untax {
namespace {

/// The additions and multiplications that a plain loop does in some tenths of a second.
constexpr double most_plain_operations = 1e12;

std::size_t bytes_of(range rows, range cols, dtype type) {
  return static_cast<std::size_t>(rows.size * cols.size) * size_of(type);
}

}  // namespace

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
  gpu::fill_normal(a_, whole_a(seed).seed, share_.c_rows, depth, stream);
  gpu::fill_normal(b_, whole_b(seed, share_).seed, share_.c_cols, depth, stream);
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

}  // namespace untax
