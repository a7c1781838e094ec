#include "bench/suites/gemm.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/vectors.cuh"
#include "engines/bulk/library_gemm.hpp"
#include "engines/gpu/gemm/gemm.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "src/symmetric/cuda/graph.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"

namespace untax::bench {
namespace {

constexpr std::int64_t rotated_bytes = std::int64_t{200} << 20;  // more than three times L2
constexpr double largest_error = 5e-3;

/// One shape, with matrices in several places.
class gemm_trial {
 public:
  gemm_trial(gemm_row& row, dtype type, const gpu::stopwatch& clock)
      : row_(row),
        clock_(clock),
        library_({row.m, row.n, row.k, type, type}),
        op_({row.m, row.n, row.k, type}),
        a_bytes_(2 * row.m * row.k),
        b_bytes_(2 * row.n * row.k),
        c_bytes_(2 * row.m * row.n),
        places_(static_cast<int>(
            std::clamp<std::int64_t>(rotated_bytes / (a_bytes_ + b_bytes_ + c_bytes_) + 1, 2, 16))),
        a_(bytes_of(a_bytes_)),
        b_(bytes_of(b_bytes_)),
        c_(bytes_of(c_bytes_)) {
    fill(a_, places_ * row.m * row.k, type, 1);
    fill(b_, places_ * row.n * row.k, type, 2);
    row.plan = op_.plan().text();
    check(type);
    // Enough products to hide how a graph starts.
    const double flops = 2.0 * static_cast<double>(row.m) * static_cast<double>(row.n * row.k);
    products_ = flops < 1e11 ? 16 : flops < 1e12 ? 4 : 2;
  }

  void measure(int repeats) {
    library_.settle();
    const gpu::graph own = captured([this](int i) { run_own(i); });
    const gpu::graph theirs = captured([this](int i) { run_library(i); });
    std::vector<double> seconds[2];
    for (int repeat = -2; repeat < repeats; ++repeat) {
      const double one = seconds_of(own);
      const double two = seconds_of(theirs);
      if (repeat < 0) continue;
      seconds[0].push_back(one);
      seconds[1].push_back(two);
    }
    row_.time = spread_of(seconds[0]);
    row_.library_time = spread_of(seconds[1]);
  }

 private:
  /// Several products, one after the other, that start together.
  [[nodiscard]] gpu::graph captured(const std::function<void(int)>& product) const {
    return {clock_.stream(), [&] {
              for (int i = 0; i < products_; ++i) product(i);
            }};
  }
  /// Of one product.
  [[nodiscard]] double seconds_of(const gpu::graph& products) const {
    clock_.start();
    products.launch(clock_.stream());
    return clock_.stop() / products_;
  }
  [[nodiscard]] std::size_t bytes_of(std::int64_t one) const {
    return static_cast<std::size_t>(one) * static_cast<std::size_t>(places_);
  }
  [[nodiscard]] std::byte* at(const device_buffer& all, std::int64_t bytes, int i) const {
    return static_cast<std::byte*>(all.data()) + bytes * (i % places_);
  }
  void run_own(int i) const {
    op_.run(at(a_, a_bytes_, i), at(b_, b_bytes_, i), at(c_, c_bytes_, i), clock_.stream());
  }
  void run_library(int i) const {
    library_.run(at(a_, a_bytes_, i), at(b_, b_bytes_, i), at(c_, c_bytes_, i), clock_.stream());
  }

  void fill(const device_buffer& matrix, std::int64_t count, dtype type, std::uint64_t seed) {
    gpu::fill_normal({matrix.data(), type, 1, count}, seed, {0, 1}, {0, count}, clock_.stream());
  }

  void check(dtype type) {
    gpu::require(cudaMemsetAsync(c_.data(), 0xff, bytes_of(c_bytes_), clock_.stream()),
                 "poisoning");
    run_own(0);
    library_.run(a_.data(), b_.data(), at(c_, c_bytes_, 1), clock_.stream());
    const device_buffer sums(sizeof(gpu::comparison));
    row_.relative_error =
        gpu::compare({c_.data(), type, row_.m, row_.n}, {at(c_, c_bytes_, 1), type, row_.m, row_.n},
                     sums.data(), clock_.stream())
            .relative_error();
    if (row_.relative_error < largest_error) return;
    throw error(errc::internal,
                fmt::format("bench gemm: m {}, n {}, k {} ({}): relative error {:.2g}", row_.m,
                            row_.n, row_.k, row_.plan, row_.relative_error));
  }

  gemm_row& row_;
  const gpu::stopwatch& clock_;
  bulk::library_gemm library_;
  gpu::gemm op_;
  std::int64_t a_bytes_;
  std::int64_t b_bytes_;
  std::int64_t c_bytes_;
  int places_;
  device_buffer a_;
  device_buffer b_;
  device_buffer c_;
  int products_ = 1;
};

std::string device_name() {
  int device = 0;
  cudaDeviceProp found{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&found, device) != cudaSuccess) {
    cudaGetLastError();
    throw error(errc::unsupported, "bench gemm needs a GPU, and there is none");
  }
  return found.name;
}

}  // namespace

gemm_report run_gemm_suite(const gemm_suite_options& options) {
  gemm_report report{device_name(), bulk::blas().text, options.type, gemm_shapes(options)};
  const gpu::stopwatch clock;
  for (gemm_row& row : report.rows) {
    gemm_trial(row, options.type, clock).measure(options.repeats);
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
