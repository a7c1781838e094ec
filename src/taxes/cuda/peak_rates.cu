#include "src/taxes/cuda/peak_rates.hpp"

#include <cuda_runtime.h>

#include <vector>

#include <untax/taxes/timing.hpp>

#include "engines/bulk/scratch.hpp"
#include "engines/gpu/matrix/matrix.hpp"

namespace untax {
namespace {

constexpr int repeats = 9;
constexpr std::size_t read_bytes = std::size_t{2} << 30U;
constexpr int blocks = 132 * 8;
constexpr int threads = 256;
constexpr int at_once = 8;

/// Reads all but a small rest. The store, which does not happen, keeps the loads alive.
__global__ void read_all(const uint4* from, std::size_t count, std::uint32_t* never) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::uint32_t mixed = 0;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i + (at_once - 1) * step < count; i += at_once * step) {
    uint4 v[at_once];
#pragma unroll
    for (int j = 0; j < at_once; ++j) v[j] = __ldcs(from + i + j * step);
#pragma unroll
    for (int j = 0; j < at_once; ++j) mixed ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  if (mixed == 0x9e3779b9U) *never = mixed;
}

std::vector<int> everybody(const gpu_team& team) {
  std::vector<int> total;
  for (int rank = 0; rank < team.size(); ++rank) total.push_back(rank);
  return total;
}

spread seconds_of(gpu_team& team, const std::function<void(int, cudaStream_t)>& launch) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) seconds.push_back(team.timed(everybody(team), launch));
  return spread_of(seconds);
}

}  // namespace

spread spread_of_link_rate(gpu_team& team) {
  const int ranks = team.size();
  const std::size_t part = link_bytes / static_cast<std::size_t>(ranks) / 512 * 512;
  const auto landing = team.allocate<std::byte>(link_bytes, "landing of the link's measurement");
  std::vector<bulk::scratch> sources;
  for (int rank = 0; rank < ranks; ++rank) {
    team.use(rank);
    sources.emplace_back(part);
  }
  constexpr int rounds = 4;
  const spread seconds = seconds_of(team, [&](int rank, cudaStream_t stream) {
    const auto self = static_cast<std::size_t>(rank);
    for (int round = 0; round < rounds; ++round) {
      for (int hop = 1; hop < ranks; ++hop) {
        gpu::require(cudaMemcpyAsync(landing[self].at((rank + hop) % ranks, self * part),
                                     sources[self].data(), part, cudaMemcpyDeviceToDevice, stream),
                     "a copy to a peer");
      }
    }
  });
  team.together([&](world& w) { w.free(landing[static_cast<std::size_t>(w.rank())]); });
  const double bytes = static_cast<double>(part) * rounds * (ranks - 1);
  return {bytes / seconds.median, bytes / seconds.p90, bytes / seconds.p10};
}

double memory_rate(gpu_team& team) {
  std::vector<bulk::scratch> memory;
  for (int rank = 0; rank < team.size(); ++rank) {
    team.use(rank);
    memory.emplace_back(read_bytes);
  }
  for (int rank = 0; rank < team.size(); ++rank) {
    team.use(rank);
    constexpr auto values = static_cast<std::int64_t>(read_bytes / 2);
    gpu::fill_normal({memory[static_cast<std::size_t>(rank)].data(), dtype::bf16, 1, values}, 1,
                     {0, 1}, {0, values}, stream_ref(team.stream_of(rank)));
  }
  const spread seconds = seconds_of(team, [&](int rank, cudaStream_t stream) {
    void* data = memory[static_cast<std::size_t>(rank)].data();
    read_all<<<blocks, threads, 0, stream>>>(static_cast<const uint4*>(data),
                                             read_bytes / sizeof(uint4),
                                             static_cast<std::uint32_t*>(data));
  });
  return static_cast<double>(read_bytes) / seconds.median;
}

}  // namespace untax
