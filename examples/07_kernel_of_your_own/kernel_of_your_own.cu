// A kernel that puts, signals and waits: every rank gets the sum of all ranks' vectors, which
// travel around a ring. docs/tutorials/07-kernel-of-your-own.md explains it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include <untax/untax.hpp>
#include <untax/world/device_world.cuh>

namespace {

constexpr int most_ranks = 4;
constexpr int skipped = 77;  // what ctest takes for a test that could not run here
constexpr int count = 1000;
constexpr int runs = 5;

void ok(cudaError_t result) {
  if (result == cudaSuccess) return;
  throw untax::error(untax::errc::internal, cudaGetErrorString(result));
}

int gpus() {
  int found = 0;
  return cudaGetDeviceCount(&found) == cudaSuccess ? found : 0;
}

// One block at every rank. Each step hands on what came in the step before.
__global__ void sum_of_all(untax::device_world world, untax::symmetric<float> inbox,
                           untax::symmetric<std::uint64_t> arrived, const float* mine, float* sum,
                           std::uint64_t run) {
  auto block = world.block();
  const int next = (world.rank() + 1) % world.size();
  const int before = (world.rank() + world.size() - 1) % world.size();
  const int steps = world.size() - 1;
  for (int i = block.thread_rank(); i < count; i += block.size()) sum[i] = mine[i];

  const float* passed = mine;
  for (int step = 0; step < steps; ++step) {
    const std::size_t room = (run % 2 * steps + step) * count;
    const std::uint64_t value = run * steps + step + 1;
    untax::put_with_signal(block, inbox.at(next, room), passed, count, arrived.at(next), value);
    // A wait that fails leaves the kernel as usual, and the host learns why.
    if (!untax::wait_until(block, arrived.local(), value, {.name = "sum_of_all", .peer = before}))
      return;
    passed = inbox.local(room);
    for (int i = block.thread_rank(); i < count; i += block.size()) sum[i] += passed[i];
  }
}

float element(int rank, int run, int i) { return static_cast<float>((rank + 1) * (run + i)); }

void expect_right(const std::vector<float>& sum, int ranks, int run) {
  for (int i = 0; i < count; ++i) {
    float right = 0;
    for (int rank = 0; rank < ranks; ++rank) right += element(rank, run, i);
    if (sum[static_cast<std::size_t>(i)] == right) continue;
    throw untax::error(untax::errc::internal, "a sum is wrong");
  }
}

void sum_up(untax::world& world) {
  // Two sets of rooms, used in turn: a rank that is early writes where no rank reads any more.
  const auto inbox = world.allocate<float>(
      static_cast<std::size_t>(2 * std::max(world.size() - 1, 1) * count), "inbox");
  const auto arrived = world.allocate_cleared<std::uint64_t>(1, "arrived");
  // Only this kernel accesses these two, so they could be any memory of the GPU.
  const auto mine = world.allocate<float>(count, "mine");
  const auto sum = world.allocate<float>(count, "sum");
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  // Kernels are loaded when they are first used, which may wait for a kernel that runs.
  cudaFuncAttributes ignored;
  ok(cudaFuncGetAttributes(&ignored, sum_of_all));
  world.barrier();

  std::vector<float> values(count);
  for (int run = 0; run < runs; ++run) {
    for (int i = 0; i < count; ++i)
      values[static_cast<std::size_t>(i)] = element(world.rank(), run, i);
    ok(cudaMemcpyAsync(mine.local(), values.data(), count * sizeof(float), cudaMemcpyDefault,
                       stream));
    sum_of_all<<<1, 256, 0, stream>>>(untax::device_world(world.device_state()), inbox, arrived,
                                      mine.local(), sum.local(), static_cast<std::uint64_t>(run));
    ok(cudaGetLastError());
    ok(cudaMemcpyAsync(values.data(), sum.local(), count * sizeof(float), cudaMemcpyDefault,
                       stream));
    ok(cudaStreamSynchronize(stream));
    world.check();
    expect_right(values, world.size(), run);
  }
  ok(cudaStreamDestroy(stream));
  std::printf("rank %d: %d sums of %d vectors are right\n", world.rank(), runs, world.size());
  // No rank leaves while a peer may still write here.
  world.barrier();
}

}  // namespace

int main() {
  const int ranks = std::min(gpus(), most_ranks);
  if (ranks == 0) {
    std::printf("skipped: this takes a GPU, and here is none\n");
    return skipped;
  }
  try {
    untax::run_gpus(ranks, sum_up);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
