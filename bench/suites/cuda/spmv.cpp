#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/sparse/device_spmv.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/spmv.hpp"
#include "engines/gpu/sparse/device_array.hpp"
#include "src/sparse/instantiate.hpp"
#include "src/symmetric/cuda/graph.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"
#include "src/taxes/cuda/gpu_team.hpp"
#include "src/taxes/cuda/peak_rates.hpp"

namespace untax::bench {
namespace {

using namespace sparse;

constexpr double graph_seconds =
    2e-4;  ///< the least time of a graph, so that its launch is negligible
constexpr int most_products = 20;
/// A kernel that takes this many times as long as another, and `long_seconds`, is timed once.
constexpr double hopeless = 20;
constexpr double long_seconds = 2e-3;
constexpr double most_seconds = 2e-2;  ///< a kernel that takes longer is timed once, too

template <class T>
device_array<T> copied(std::span<const T> from, cudaStream_t stream) {
  device_array<T> made(std::max<std::int64_t>(std::ssize(from), 1), stream);
  gpu::require(
      cudaMemcpyAsync(made.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream),
      "a sparse matrix cannot be copied to a GPU");
  return made;
}

/// Keeps freed memory in the pool for later allocations, so that a conversion is timed as in a
/// program that goes on.
void keep_memory() {
  int device = 0;
  cudaMemPool_t pool = nullptr;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    throw error(errc::unsupported, "spmv on a GPU needs a GPU, and there is none");
  }
  gpu::require(cudaDeviceGetDefaultMemPool(&pool, device), "cannot get the memory pool of a GPU");
  gpu::require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &least),
               "cannot set the release threshold of a memory pool");
}

/// One matrix on a GPU.
template <class Value, class Offset>
class trial {
 public:
  trial(const csr<Value, Offset>& matrix, std::span<const Value> x, const spmv_options& options)
      : matrix_(matrix),
        host_x_(x),
        options_(options),
        offsets_(copied(std::span<const Offset>(matrix.offsets), clock_.stream())),
        columns_(copied(std::span<const std::int32_t>(matrix.columns), clock_.stream())),
        values_(copied(std::span<const Value>(matrix.values), clock_.stream())),
        x_(copied(x, clock_.stream())),
        y_(std::max<std::int64_t>(matrix.rows, 1), clock_.stream()) {
    gpu::require(cudaStreamSynchronize(clock_.stream()), "a sparse matrix cannot be copied");
  }

  [[nodiscard]] double gathering_seconds() const {
    std::vector<double> times;
    for (int turn = -1; turn < options_.repeats; ++turn) {
      const auto begin = std::chrono::steady_clock::now();
      (void)bounds_of_rows(matrix_.rows, offsets_.data(), clock_.stream());
      const auto taken = std::chrono::steady_clock::now() - begin;
      if (turn >= 0) times.push_back(std::chrono::duration<double>(taken).count());
    }
    return spread_of(std::move(times)).median;
  }

  [[nodiscard]] spmv_figure measure(spmv_kernel kernel) {
    spmv_figure figure;
    figure.kernel = kernel;
    try {
      const device_csr<Value, Offset> on_device{matrix_.rows,          matrix_.cols,
                                                matrix_.view().size(), offsets_.data(),
                                                columns_.data(),       values_.data()};
      const device_spmv<Value, Offset> product(on_device, kernel, clock_.stream());
      // The second conversion is timed, since the first one loads kernels and allocates memory.
      figure.setup_seconds =
          device_spmv<Value, Offset>(on_device, kernel, clock_.stream()).setup_seconds();
      figure.seconds = seconds_of(product);
      if (options_.verify) figure.error = error_of(product);
    } catch (const error& e) {
      if (e.code() != errc::unsupported && e.code() != errc::out_of_memory) throw;
      figure.refused = e.what();
    }
    return figure;
  }

 private:
  void run(const device_spmv<Value, Offset>& product) const {
    product.run(1, x_.data(), 0, y_.data(), clock_.stream());
  }

  [[nodiscard]] double seconds_of(const device_spmv<Value, Offset>& product) {
    double once = 0;
    // The first run may load the kernel.
    for (int turn = 0; turn < 2; ++turn) {
      clock_.start();
      run(product);
      once = clock_.stop();
    }
    if (once > most_seconds || (once > long_seconds && once > hopeless * quickest_)) return once;
    const int products =
        std::clamp(static_cast<int>(graph_seconds / std::max(once, 1e-6)), 1, most_products);
    const gpu::graph all(clock_.stream(), [&] {
      for (int i = 0; i < products; ++i) run(product);
    });
    std::vector<double> times;
    for (int i = -1; i < options_.repeats; ++i) {
      clock_.start();
      all.launch(clock_.stream());
      const double seconds = clock_.stop() / products;
      if (i >= 0) times.push_back(seconds);
    }
    const double median = spread_of(std::move(times)).median;
    quickest_ = std::min(quickest_, median);
    return median;
  }

  [[nodiscard]] double error_of(const device_spmv<Value, Offset>& product) {
    const std::size_t bytes = static_cast<std::size_t>(matrix_.rows) * sizeof(Value);
    gpu::require(cudaMemsetAsync(y_.data(), 0xff, bytes, clock_.stream()),
                 "cannot poison a result");
    run(product);
    std::vector<Value> y(static_cast<std::size_t>(matrix_.rows));
    gpu::require(
        cudaMemcpyAsync(y.data(), y_.data(), bytes, cudaMemcpyDeviceToHost, clock_.stream()),
        "a result cannot be copied back");
    gpu::require(cudaStreamSynchronize(clock_.stream()), "a product failed");
    return spmv_error(matrix_.view(), 1, host_x_, 0, {}, std::span<const Value>(y));
  }

  const csr<Value, Offset>& matrix_;
  std::span<const Value> host_x_;
  const spmv_options& options_;
  gpu::stopwatch clock_;
  device_array<Offset> offsets_;
  device_array<std::int32_t> columns_;
  device_array<Value> values_;
  device_array<Value> x_;
  device_array<Value> y_;
  double quickest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

template <class Value, class Offset>
void measure_on_gpu(const csr<Value, Offset>& matrix, std::span<const Value> x,
                    const spmv_options& options, spmv_figures& to) {
  keep_memory();
  trial<Value, Offset> one(matrix, x, options);
  to.gathering_seconds = one.gathering_seconds();
  for (const spmv_kernel kernel : options.kernels) to.kernels.push_back(one.measure(kernel));
}

double gpu_memory_rate() {
  gpu_team team(1, 1 << 20);
  return memory_rate(team);
}

#define UNTAX_MEASURE(Value, Offset)                                              \
  template void measure_on_gpu(const csr<Value, Offset>&, std::span<const Value>, \
                               const spmv_options&, spmv_figures&);
UNTAX_SPARSE_TYPES(UNTAX_MEASURE)
#undef UNTAX_MEASURE

}  // namespace untax::bench
