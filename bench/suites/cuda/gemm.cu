#include "bench/suites/gemm.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/vectors.cuh"
#include "engines/bulk/library_gemm.hpp"
#include "engines/sm90/gemm/gemm.hpp"
#include "engines/sm90/matrix/matrix.hpp"
#include "src/taxes/cuda/check.hpp"

namespace untax::bench {
namespace {

constexpr std::int64_t rotated_bytes = std::int64_t{200} << 20;  // more than three times L2
constexpr double largest_error = 5e-3;

struct timer {
  timer() {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    check_cuda(cudaEventCreate(&begin), "an event");
    check_cuda(cudaEventCreate(&end), "an event");
  }
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;
  ~timer() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
  }

  /// Seconds that what `launch` starts takes.
  double seconds(const std::function<void()>& launch) const {
    check_cuda(cudaEventRecord(begin, stream), "timing");
    launch();
    check_cuda(cudaEventRecord(end, stream), "timing");
    check_cuda(cudaEventSynchronize(end), "timing a GEMM");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "timing");
    return 1e-3 * milliseconds;
  }

  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

/// Several products, one after the other, that start together.
class captured {
 public:
  captured(cudaStream_t stream, int count, const std::function<void(int)>& product) {
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    for (int i = 0; i < count; ++i) product(i);
    check_cuda(cudaStreamEndCapture(stream, &graph), "capturing");
    const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(made, "a graph");
  }
  captured(const captured&) = delete;
  captured& operator=(const captured&) = delete;
  ~captured() { cudaGraphExecDestroy(graph_); }

  void launch(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(graph_, stream), "a graph"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

/// One shape, with matrices in several places.
class gemm_trial {
 public:
  gemm_trial(gemm_row& row, dtype type, const timer& clock)
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
    const captured own(clock_.stream, products_, [&](int i) { run_own(i); });
    const captured theirs(clock_.stream, products_, [&](int i) { run_library(i); });
    std::vector<double> seconds[2];
    for (int repeat = -2; repeat < repeats; ++repeat) {
      const double one = clock_.seconds([&] { own.launch(clock_.stream); }) / products_;
      const double two = clock_.seconds([&] { theirs.launch(clock_.stream); }) / products_;
      if (repeat < 0) continue;
      seconds[0].push_back(one);
      seconds[1].push_back(two);
    }
    row_.time = spread_of(seconds[0]);
    row_.library_time = spread_of(seconds[1]);
  }

 private:
  [[nodiscard]] std::size_t bytes_of(std::int64_t one) const {
    return static_cast<std::size_t>(one) * static_cast<std::size_t>(places_);
  }
  [[nodiscard]] std::byte* at(const device_buffer& all, std::int64_t bytes, int i) const {
    return static_cast<std::byte*>(all.data()) + bytes * (i % places_);
  }
  void run_own(int i) const {
    op_.run(at(a_, a_bytes_, i), at(b_, b_bytes_, i), at(c_, c_bytes_, i), clock_.stream);
  }
  void run_library(int i) const {
    library_.run(at(a_, a_bytes_, i), at(b_, b_bytes_, i), at(c_, c_bytes_, i), clock_.stream);
  }

  void fill(const device_buffer& matrix, std::int64_t count, dtype type, std::uint64_t seed) {
    sm90::fill_normal({matrix.data(), type, 1, count}, seed, {0, 1}, {0, count}, clock_.stream);
  }

  void check(dtype type) {
    check_cuda(cudaMemsetAsync(c_.data(), 0xff, bytes_of(c_bytes_), clock_.stream), "poisoning");
    run_own(0);
    library_.run(a_.data(), b_.data(), at(c_, c_bytes_, 1), clock_.stream);
    const device_buffer sums(sizeof(sm90::comparison));
    row_.relative_error =
        sm90::compare({c_.data(), type, row_.m, row_.n},
                      {at(c_, c_bytes_, 1), type, row_.m, row_.n}, sums.data(), clock_.stream)
            .relative_error();
    if (row_.relative_error < largest_error) return;
    throw error(errc::internal,
                fmt::format("bench gemm: m {}, n {}, k {} ({}): relative error {:.2g}", row_.m,
                            row_.n, row_.k, row_.plan, row_.relative_error));
  }

  gemm_row& row_;
  const timer& clock_;
  bulk::library_gemm library_;
  sm90::gemm op_;
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
  const timer clock;
  for (gemm_row& row : report.rows) {
    gemm_trial(row, options.type, clock).measure(options.repeats);
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
