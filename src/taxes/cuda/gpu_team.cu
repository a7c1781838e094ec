#include "src/taxes/cuda/gpu_team.cuh"

#include <algorithm>
#include <exception>
#include <thread>

#include <untax/core/error.hpp>

#include "src/core/start_threads.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

/// A gate that opens for all ranks at once. One thread launches the measured work, one rank after
/// the other, so the gate opens only after a delay, when all of it is in the queues.
__global__ void start_gate(device_world world, device_barrier barrier, std::uint64_t delay_ns) {
  auto warp = world.warp(0);
  if (!barrier.arrive_and_wait(warp, "start of a measurement")) return;
  const std::uint64_t opens = cuda_memory::now() + delay_ns;
  while (cuda_memory::now() < opens) {
  }
}

int usable_ranks(int asked) {
  int result = 0;
  const cudaError_t status = cudaGetDeviceCount(&result);
  if (status != cudaSuccess) result = 0;
  const int needed = asked == 1 ? 1 : std::max(asked, 2);
  if (result >= needed) return asked == 0 ? result : asked;
  const std::string why =
      status == cudaSuccess ? "" : std::string(" (") + cudaGetErrorString(status) + ")";
  throw error(errc::unsupported, "this needs " + std::to_string(needed) +
                                     " GPUs that reach each other's memory, and there are " +
                                     std::to_string(result) + why);
}

world_options with_heap(std::size_t bytes) {
  world_options options;
  options.heap_bytes = bytes;
  return options;
}

}  // namespace

gpu_team::gpu_team(int ranks, std::size_t heap_bytes)
    : worlds_(world::local_gpus(usable_ranks(ranks), with_heap(heap_bytes))) {
  for (int rank = 0; rank < size(); ++rank) {
    use(rank);
    member m;
    gpu::require(cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking), "making a stream");
    gpu::require(cudaEventCreate(&m.begin), "making an event");
    gpu::require(cudaEventCreate(&m.end), "making an event");
    members_.push_back(m);
    gpu::load_kernel(reinterpret_cast<const void*>(start_gate), "loading a kernel");
  }
  gate_ = allocate<std::uint64_t>(device_barrier::words(size()), "start gate");
}

gpu_team::~gpu_team() {
  for (int rank = 0; rank < size(); ++rank) {
    worlds_[static_cast<std::size_t>(rank)].use_device();
    const member& m = members_[static_cast<std::size_t>(rank)];
    cudaStreamSynchronize(m.stream);
    cudaEventDestroy(m.begin);
    cudaEventDestroy(m.end);
    cudaStreamDestroy(m.stream);
  }
}

std::string gpu_team::device_name() const {
  cudaDeviceProp properties{};
  gpu::require(cudaGetDeviceProperties(&properties, worlds_[0].device()), "asking for a device");
  return properties.name;
}

void gpu_team::use(int rank) const { worlds_[static_cast<std::size_t>(rank)].use_device(); }

void gpu_team::clear(int rank, void* local, std::size_t bytes) {
  use(rank);
  gpu::require(cudaMemsetAsync(local, 0, bytes, stream_of(rank)), "clearing memory");
  gpu::require(cudaStreamSynchronize(stream_of(rank)), "clearing memory");
}

void gpu_team::together(const std::function<void(world&)>& body) {
  std::vector<std::exception_ptr> failures(worlds_.size());
  std::vector<std::thread> threads;
  const auto join_all = [&threads] {
    for (std::thread& t : threads) t.join();
  };
  try {
    start_threads(threads, size(), "the ranks of a measurement", [&](int r) {
      const auto rank = static_cast<std::size_t>(r);
      try {
        worlds_[rank].use_device();
        body(worlds_[rank]);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  } catch (const error& e) {
    // Threads that run may wait for a rank whose thread could not be started.
    worlds_.back().fail(e.code(), e.what());
    join_all();
    throw;
  }
  join_all();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void gpu_team::open_gate(int rank, std::uint64_t delay_ns) {
  start_gate<<<1, 32, 0, stream_of(rank)>>>(
      world_of(rank), device_barrier(gate_[static_cast<std::size_t>(rank)]), delay_ns);
  gpu::require(cudaGetLastError(), "opening the start gate");
}

double gpu_team::longest_of(const std::vector<int>& ranks) const {
  double longest = 0;
  for (const int rank : ranks) {
    const member& m = members_[static_cast<std::size_t>(rank)];
    float milliseconds = 0;
    gpu::require(cudaEventElapsedTime(&milliseconds, m.begin, m.end), "reading a clock");
    longest = std::max(longest, 1e-3 * static_cast<double>(milliseconds));
  }
  return longest;
}

double gpu_team::timed_eagerly(const std::function<void(int, cudaStream_t)>& launch) {
  together([&](world& w) {
    const int rank = w.rank();
    const member& m = members_[static_cast<std::size_t>(rank)];
    open_gate(rank, 0);
    gpu::require(cudaEventRecord(m.begin, m.stream), "recording an event");
    launch(rank, m.stream);
    gpu::require(cudaEventRecord(m.end, m.stream), "recording an event");
  });
  finish();
  std::vector<int> everybody;
  for (int rank = 0; rank < size(); ++rank) everybody.push_back(rank);
  return longest_of(everybody);
}

double gpu_team::timed(const std::vector<int>& ranks,
                       const std::function<void(int, cudaStream_t)>& launch) {
  // All ranks pass the gate, also those without work.
  for (int rank = 0; rank < size(); ++rank) {
    use(rank);
    open_gate(rank, 200'000);
  }
  for (const int rank : ranks) {
    const member& m = members_[static_cast<std::size_t>(rank)];
    use(rank);
    gpu::require(cudaEventRecord(m.begin, m.stream), "recording an event");
    launch(rank, m.stream);
    gpu::require(cudaEventRecord(m.end, m.stream), "recording an event");
  }
  finish();
  return longest_of(ranks);
}

void gpu_team::run(const std::vector<int>& ranks,
                   const std::function<void(int, cudaStream_t)>& launch) {
  for (const int rank : ranks) {
    use(rank);
    launch(rank, stream_of(rank));
  }
  finish();
}

void gpu_team::finish() {
  for (int rank = 0; rank < size(); ++rank) {
    use(rank);
    gpu::require(cudaGetLastError(), "launching a kernel");
    gpu::require(cudaStreamSynchronize(stream_of(rank)), "a kernel");
  }
  for (const world& w : worlds_) w.check();
}

}  // namespace untax
