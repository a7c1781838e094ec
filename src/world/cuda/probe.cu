#include "links.hpp"

#include <cuda_runtime.h>

#include <cstdint>

#include <untax/flow/device_wait.cuh>
#include <untax/rma/device_copy.cuh>
#include <untax/rma/device_signal.cuh>
#include <untax/world/launch.hpp>

#include "src/symmetric/cuda/stopwatch.hpp"

namespace untax::gpu {
namespace {

constexpr std::int64_t words = (std::int64_t{64} << 20) / sizeof(std::uint64_t);
constexpr int repeats = 5;
constexpr std::uint64_t round_trips = 200;

__global__ void push(std::uint64_t* to, const std::uint64_t* from) {
  put(device_grid(), to, from, words);
}

__global__ void pull(std::uint64_t* to, const std::uint64_t* from) {
  get(device_grid(), to, from, words);
}

// One thread on each of two GPUs; the one with `begins` signals first. Signals `from` + 1 to
// `last`.
__global__ void exchange(device_control state, std::uint64_t* mine, std::uint64_t* theirs, int peer,
                         bool begins, std::uint64_t from, std::uint64_t last) {
  waiting<device_thread> self(state, 0);
  for (std::uint64_t i = from + 1; i <= last; ++i) {
    if (begins) signal(self, theirs, i);
    if (!wait_until(self, mine, i, {.name = "doctor", .peer = peer})) return;
    if (!begins) signal(self, theirs, i);
  }
}

// The first launch is a warm-up and is not timed.
template <class Launch>
double bytes_per_second(const stopwatch& watch, const Launch& launch) {
  launch();
  watch.start();
  for (int i = 0; i < repeats; ++i) launch();
  return repeats * static_cast<double>(words) * sizeof(std::uint64_t) / watch.stop();
}

void measure(world& w, std::vector<std::vector<peer_facts>>& peers) {
  const int self = w.rank();
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, w.device()), "a GPU");
  const int blocks = properties.multiProcessorCount;
  const auto from = w.allocate_cleared<std::uint64_t>(words, "doctor's data");
  const auto to = w.allocate_cleared<std::uint64_t>(words, "doctor's copy");
  const auto counters =
      w.allocate_cleared<std::uint64_t>(static_cast<std::size_t>(w.size()), "doctor's signals");
  const device_control state = w.device_state();
  const stopwatch watch;
  for (int first = 0; first < w.size(); ++first) {
    for (int second = 0; second < w.size(); ++second) {
      if (first == second) continue;
      w.barrier();  // one pair at a time
      if (self == first) {
        peer_facts& result =
            peers[static_cast<std::size_t>(self)][static_cast<std::size_t>(second)];
        result.push = bytes_per_second(
            watch, [&] { push<<<blocks, 1024, 0, watch.stream()>>>(to.at(second), from.local()); });
        result.pull = bytes_per_second(
            watch, [&] { pull<<<blocks, 1024, 0, watch.stream()>>>(to.local(), from.at(second)); });
      }
      w.barrier();
      if (self != first && self != second) continue;
      const int other = self == first ? second : first;
      const bool begins = self == first;
      const auto peer = static_cast<std::size_t>(other);
      // Each pair is measured twice, and the counters go on from the first time.
      const std::uint64_t before = first < second ? 0 : round_trips + 1;
      const auto run = [&](std::uint64_t least, std::uint64_t most) {
        exchange<<<1, 1, 0, watch.stream()>>>(state, counters.local(peer),
                                              counters.at(other, static_cast<std::size_t>(self)),
                                              other, begins, least, most);
      };
      run(before, before + 1);  // so that both kernels have run once
      watch.start();
      run(before + 1, before + 1 + round_trips);
      const double time = watch.stop();
      w.check();
      if (begins)
        peers[static_cast<std::size_t>(self)][peer].signal_time = time / (2.0 * round_trips);
    }
  }
  w.barrier();
}

}  // namespace

void measure_links(std::vector<std::vector<peer_facts>>& peers) {
  world_options options;
  options.heap_bytes = 2 * words * sizeof(std::uint64_t) + (std::size_t{1} << 20);
  options.heap_guards = false;
  run_gpus(
      static_cast<int>(peers.size()), [&](world& w) { measure(w, peers); }, options);
}

}  // namespace untax::gpu
