#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <untax/world/options.hpp>

#include "src/symmetric/cuda/stream.hpp"
#include "tests/errors.hpp"

namespace gpu_test {

using namespace std::chrono_literals;
using untax_test::error_of;
using untax_test::expect_error;

/// How many ranks share a GPU, by UNTAX_RANKS_PER_GPU.
int sharing();
/// How many ranks have a place: GPUs that this process sees, or several times as many if they share
/// them; 0 also if there is no driver.
int gpus();
/// Why a test that takes `needed` GPUs cannot run here; empty if it can.
std::string missing(int needed);

/// Why a test cannot run under a tool that watches kernels, such as compute-sanitizer: `reason`,
/// and which tool is there. Empty if none is.
std::string watched(const std::string& reason);

/// How many random cases a test takes: `usual`, or what UNTAX_GPU_CASES asks for: many for a proof,
/// few under a tool that makes kernels slow.
int cases(int usual);
/// How often a test of equal bits runs an operator: UNTAX_GPU_RUNS, or so often.
int runs(int usual);

/// Heaps of 4 MiB in GPU memory. UNTAX_WAIT_LIMIT_MS wins over the limit.
untax::world_options gpu_world(std::chrono::milliseconds wait_limit = 10s);

/// Fails the test, and throws, unless the call of CUDA went well.
void ok(cudaError_t result);

/// Delays all later work in a stream by `time`.
void hold(cudaStream_t s, std::chrono::microseconds time);

/// A stream of the current device, as users should have one.
class stream {
 public:
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_.get(); }
  /// Returns when everything is done; false if a kernel failed.
  bool done() const { return cudaStreamSynchronize(get()) == cudaSuccess; }

 private:
  untax::gpu::stream stream_{untax::gpu::stream_use::own};  // few of them where ranks share a GPU
};

/// Copies in any direction, and waits.
template <class T>
void copy(T* to, const T* from, std::size_t count, const stream& s) {
  // A copy of memory that is not pinned waits for the stream inside the driver, where it can keep
  // the other ranks of the GPU from launching what this stream waits for.
  ok(cudaStreamSynchronize(s.get()));
  ok(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, s.get()));
  ok(cudaStreamSynchronize(s.get()));
}

/// The values of `count` elements on a device.
template <class T>
std::vector<T> values(const T* from, std::size_t count, const stream& s) {
  std::vector<T> found(count);
  copy(found.data(), from, count, s);
  return found;
}

}  // namespace gpu_test

/// Skips the test, with the reason, where there are fewer GPUs.
#define NEEDS_GPUS(count) \
  if (const std::string why = gpu_test::missing(count); !why.empty()) GTEST_SKIP() << why
/// Skips the test where ranks share GPUs, which NCCL, copy engines and graphs cannot, and where it
/// counts GPUs itself.
#define NEEDS_OWN_GPUS() \
  if (gpu_test::sharing() > 1) GTEST_SKIP() << "needs a GPU for each rank"
/// The same where a tool watches the kernels, for a test that could not pass then.
#define NEEDS_NO_TOOL(reason) \
  if (const std::string why = gpu_test::watched(reason); !why.empty()) GTEST_SKIP() << why
