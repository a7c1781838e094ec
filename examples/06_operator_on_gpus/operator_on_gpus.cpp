// The fused operator of 04, between GPUs: on a stream, and in a CUDA graph that is launched many
// times. docs/tutorials/06-operator-on-gpus.md explains it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <untax/untax.hpp>

namespace {

using untax::bf16;

constexpr int most_ranks = 4;
constexpr int skipped = 77;      // what ctest takes for a test that could not run here
constexpr std::int64_t m = 250;  // rows of A, all ranks together
constexpr std::int64_t n = 96;   // columns of the result of each rank; a multiple of 8, as k is
constexpr std::int64_t k = 160;
constexpr int epochs = 3;

void ok(cudaError_t result) {
  if (result == cudaSuccess) return;
  throw untax::error(untax::errc::internal, cudaGetErrorString(result));
}

int gpus() {
  int found = 0;
  return cudaGetDeviceCount(&found) == cudaSuccess ? found : 0;
}

/// Rows of elements in the memory of the current GPU.
class device_rows {
 public:
  device_rows(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {
    ok(cudaMalloc(&data_, bytes()));
  }
  device_rows(const device_rows&) = delete;
  device_rows& operator=(const device_rows&) = delete;
  ~device_rows() { cudaFree(data_); }

  [[nodiscard]] untax::const_matrix read_only() const {
    return {static_cast<const bf16*>(data_), rows_, cols_};
  }
  [[nodiscard]] untax::matrix writable() const { return {static_cast<bf16*>(data_), rows_, cols_}; }
  void write(const std::vector<bf16>& from, cudaStream_t stream) const {
    ok(cudaMemcpyAsync(data_, from.data(), bytes(), cudaMemcpyHostToDevice, stream));
  }
  [[nodiscard]] std::vector<bf16> read(cudaStream_t stream) const {
    std::vector<bf16> to(static_cast<std::size_t>(rows_ * cols_));
    ok(cudaMemcpyAsync(to.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream));
    ok(cudaStreamSynchronize(stream));
    return to;
  }

 private:
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(rows_ * cols_) * sizeof(bf16);
  }

  std::int64_t rows_;
  std::int64_t cols_;
  void* data_ = nullptr;
};

// Any numbers will do, as long as every rank can tell what the others hold.
float a_at(int epoch, std::int64_t row, std::int64_t col) {
  return static_cast<float>((row * 7 + col * 3 + epoch) % 16 - 8) / 8;
}
float weight_at(int rank, std::int64_t row, std::int64_t col) {
  return static_cast<float>((row * 5 + col * 11 + rank) % 16 - 8) / 8;
}

template <class Value>
std::vector<bf16> filled(std::int64_t rows, std::int64_t cols, const Value& value) {
  std::vector<bf16> all;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) all.emplace_back(value(row, col));
  }
  return all;
}

void expect_right(const std::vector<bf16>& c, int epoch, int rank) {
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t col = 0; col < n; ++col) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += a_at(epoch, row, i) * weight_at(rank, col, i);
      const float found = static_cast<float>(c[static_cast<std::size_t>(row * n + col)]);
      // The inputs are exact in bf16, so only the rounding of the result is left.
      if (std::fabs(found - sum) <= std::fabs(sum) / 256) continue;
      throw untax::error(untax::errc::internal, "row " + std::to_string(row) + " is wrong");
    }
  }
}

void multiply(untax::world& world) {
  // The rank's GPU is the current one of this thread, so the calls below use it.
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  const untax::all_gather_gemm_problem problem{.m = m, .n = n, .k = k, .type = untax::dtype::bf16};
  untax::operator_options options;
  options.how = untax::pattern::fused_sequential;
  untax::all_gather_gemm op(world, problem, options);
  if (world.rank() == 0) std::printf("%s\n", op.explain().c_str());

  const untax::extent shard = untax::all_gather_gemm::a_shard(problem, world.size(), world.rank());
  const std::int64_t first_row = world.rank() * untax::ceil_div<std::int64_t>(m, world.size());
  const device_rows a(shard.rows, k);
  const device_rows weights(n, k);
  const device_rows c(m, n);
  const auto fill_a = [&](int epoch) {
    a.write(filled(shard.rows, k,
                   [&](auto row, auto col) { return a_at(epoch, first_row + row, col); }),
            stream);
  };
  weights.write(filled(n, k, [&](auto row, auto col) { return weight_at(world.rank(), row, col); }),
                stream);

  // With a stream, run only launches: what is ahead on the stream comes first.
  fill_a(0);
  op.run(a.read_only(), weights.read_only(), c.writable(), stream);
  expect_right(c.read(stream), 0, world.rank());
  world.check();  // throws if a kernel gave up waiting

  // A run can be captured, since it allocates nothing and reads nothing back.
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  op.run(a.read_only(), weights.read_only(), c.writable(), stream);
  ok(cudaStreamEndCapture(stream, &graph));
  ok(cudaGraphInstantiate(&replay, graph, 0));
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    fill_a(epoch);
    ok(cudaGraphLaunch(replay, stream));
    expect_right(c.read(stream), epoch, world.rank());
    world.check();
  }
  ok(cudaGraphExecDestroy(replay));
  ok(cudaGraphDestroy(graph));
  ok(cudaStreamDestroy(stream));
  std::printf("rank %d: %d products of %d x %d x %d are right\n", world.rank(), 1 + epochs, int{m},
              int{n}, int{k});
}

}  // namespace

int main() {
  const int ranks = std::min(gpus(), most_ranks);
  if (ranks < 2) {
    std::printf("skipped: this takes two GPUs or more, and here are %d\n", ranks);
    return skipped;
  }
  try {
    untax::run_gpus(ranks, multiply);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
