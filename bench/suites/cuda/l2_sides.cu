#include "bench/suites/cuda/l2_sides.hpp"

#include <algorithm>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "bench/suites/cuda/replay.hpp"
#include "bench/suites/cuda/vectors.cuh"
#include "engines/gpu/launch/this_gpu.hpp"

namespace untax::bench {
namespace {

constexpr int line = 128;
constexpr int lines = l2_chunk / line;
constexpr int sm_rounds = 8;
constexpr int chunk_lines = 4;  // lines of a chunk that are timed
constexpr int chunk_tries = 3;
constexpr int most_sms = 1024;

/// The cycles of `count` dependent atomics on lines of a chunk, from line `first` on.
__device__ long long time_atomics(unsigned* chunk, int first, int count, unsigned zero) {
  unsigned always_zero = 0;
  const long long begin = clock64();
  for (int i = 0; i < count; ++i) {
    unsigned* const word = chunk + (first + i) % lines * (line / sizeof(unsigned));
    // The next address depends on the result, as far as the compiler can see.
    always_zero = atomicAdd(word + always_zero, 0U) & zero;
  }
  return clock64() - begin;
}

/// One block of one thread on each multiprocessor.
__global__ void time_sms(unsigned* chunk, float* cycles, unsigned zero) {
  const unsigned sm = gpu::this_sm();
  long long least = 1LL << 60;
  for (int round = 0; round < sm_rounds; ++round)
    least = min(least, time_atomics(chunk, static_cast<int>(sm), lines, zero));
  cycles[sm] = static_cast<float>(least) / lines;
}

/// Tables on the device that locate multiprocessors.
struct sm_numbers {
  const std::uint8_t* side_of_sm;
  const int* number_of_sm;  ///< index among those of its side
  const int* sms_of_side;
};

struct chunk_arguments {
  std::byte* memory;
  std::int64_t chunks;
  sm_numbers at;
  float* cycles;  ///< [2][chunks]
  unsigned zero;
};

__global__ void time_chunks(chunk_arguments a) {
  const unsigned sm = gpu::this_sm();
  const int side = a.at.side_of_sm[sm];
  for (std::int64_t c = a.at.number_of_sm[sm]; c < a.chunks; c += a.at.sms_of_side[side]) {
    auto* const chunk = reinterpret_cast<unsigned*>(a.memory + c * std::int64_t{l2_chunk});
    long long least = 1LL << 60;
    for (int i = 0; i < chunk_tries; ++i)
      least = min(least, time_atomics(chunk, 0, chunk_lines, a.zero));
    a.cycles[side * a.chunks + c] = static_cast<float>(least) / chunk_lines;
  }
}

/// The shared memory with which only one block fits on a multiprocessor.
template <class Kernel>
int whole_sm(Kernel* kernel) {
  const int bytes = gpu::attribute_here(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 1024;
  gpu::require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "there is not enough shared memory");
  return bytes;
}

template <class T>
std::vector<T> fetched(const device_buffer& from, std::size_t count) {
  std::vector<T> made(count);
  gpu::require(cudaMemcpy(made.data(), from.data(), count * sizeof(T), cudaMemcpyDeviceToHost),
               "cannot fetch times");
  return made;
}

double mean(const std::vector<float>& values, const std::vector<std::uint8_t>& side, int which) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (side[i] != which) continue;
    sum += values[i];
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

struct reader_arguments {
  const std::byte* memory;
  const std::int32_t* lists[2];
  std::int64_t chunks;  ///< of each list
  int passes;
  sm_numbers at;
  unsigned* sink;
};

constexpr int reader_threads = 1024;
constexpr int chunks_at_once = 4;  // of a block; 256 threads each, 16 bytes a thread
constexpr int loads_at_once = 8;   // of a thread

/// Volatile, so that loads stay in program order and are in flight together.
__device__ uint4 load(const std::byte* memory, std::int32_t chunk, int lane) {
  uint4 value;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(memory + std::int64_t{l2_chunk} * chunk + lane * std::int64_t{sizeof(uint4)}));
  return value;
}

/// One block on each multiprocessor reads several chunks at a time.
__global__ void __launch_bounds__(reader_threads) read_chunks(reader_arguments a) {
  const unsigned sm = gpu::this_sm();
  const int side = a.at.side_of_sm[sm];
  const std::int32_t* const list = side == 0 ? a.lists[0] : a.lists[1];
  const int lane = static_cast<int>(threadIdx.x) % (reader_threads / chunks_at_once);
  const std::int64_t first = std::int64_t{a.at.number_of_sm[sm]} * chunks_at_once +
                             threadIdx.x / (reader_threads / chunks_at_once);
  const std::int64_t step = std::int64_t{a.at.sms_of_side[side]} * chunks_at_once;
  unsigned seen = 0;
  for (int pass = 0; pass < a.passes; ++pass) {
    for (std::int64_t i = first; i < a.chunks; i += loads_at_once * step) {
      std::int32_t chunk[loads_at_once];
      uint4 value[loads_at_once];
      // Reads beyond the end read the first chunk again.
#pragma unroll
      for (int j = 0; j < loads_at_once; ++j)
        chunk[j] = __ldg(list + (i + j * step < a.chunks ? i + j * step : first));
#pragma unroll
      for (int j = 0; j < loads_at_once; ++j) value[j] = load(a.memory, chunk[j], lane);
#pragma unroll
      for (int j = 0; j < loads_at_once; ++j)
        seen |= value[j].x | value[j].y | value[j].z | value[j].w;
    }
  }
  if (seen == 1) *a.sink = seen;
}

/// Tables of sides, of indices among those of a side, and of the multiprocessors of each side.
std::vector<device_buffer> tables_of(const l2_sides& sides) {
  std::vector<int> numbers;
  std::vector<int> counts(2);
  for (const std::uint8_t side : sides.of_sm) numbers.push_back(counts[side]++);
  std::vector<device_buffer> made;
  made.push_back(uploaded(sides.of_sm));
  made.push_back(uploaded(numbers));
  made.push_back(uploaded(counts));
  return made;
}
sm_numbers numbers_in(const std::vector<device_buffer>& tables) {
  return {static_cast<const std::uint8_t*>(tables[0].data()),
          static_cast<const int*>(tables[1].data()), static_cast<const int*>(tables[2].data())};
}

}  // namespace

int l2_sides::count(int side) const {
  return static_cast<int>(std::ranges::count(of_sm, static_cast<std::uint8_t>(side)));
}

std::byte* first_chunk(const device_buffer& memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  return reinterpret_cast<std::byte*>((at + l2_chunk - 1) / l2_chunk * l2_chunk);
}

l2_sides find_l2_sides() {
  constexpr double least_ratio = 1.15;  // of the farther to the nearer times
  const int sms = gpu::num_sms_here();
  const device_buffer chunk(2 * l2_chunk);
  const device_buffer times(most_sms * sizeof(float));
  gpu::require(cudaMemset(chunk.data(), 0, 2 * l2_chunk), "cannot clear a chunk");
  gpu::require(cudaMemset(times.data(), 0, most_sms * sizeof(float)), "cannot clear times");
  time_sms<<<static_cast<unsigned>(sms), 1, static_cast<std::size_t>(whole_sm(time_sms))>>>(
      reinterpret_cast<unsigned*>(first_chunk(chunk)), static_cast<float*>(times.data()), 0U);
  gpu::require(cudaGetLastError(), "cannot time multiprocessors");
  std::vector<float> cycles = fetched<float>(times, most_sms);
  cycles.resize(static_cast<std::size_t>(sms));
  const auto [least, most] = std::ranges::minmax(cycles);
  l2_sides made;
  made.of_sm.resize(cycles.size());
  for (std::size_t i = 0; i < cycles.size(); ++i)
    made.of_sm[i] = cycles[i] > (least + most) / 2 ? 1 : 0;
  made.near_cycles = mean(cycles, made.of_sm, 0);
  made.far_cycles = mean(cycles, made.of_sm, 1);
  if (least <= 0 || made.count(0) < sms / 4 || made.count(1) < sms / 4 ||
      made.far_cycles < least_ratio * made.near_cycles)
    throw error(errc::unsupported,
                fmt::format("the times of atomics of {} multiprocessors do not fall into two "
                            "groups: {} of {:.0f} cycles, {} of {:.0f}",
                            sms, made.count(0), made.near_cycles, made.count(1), made.far_cycles));
  if (made.of_sm[0] == 1) {
    for (std::uint8_t& side : made.of_sm) side ^= 1U;
  }
  return made;
}

std::vector<std::uint8_t> homes_of_chunks(const l2_sides& sides, void* memory, std::size_t bytes) {
  const std::size_t chunks = bytes / l2_chunk;
  const std::vector<device_buffer> tables = tables_of(sides);
  const device_buffer times(2 * chunks * sizeof(float));
  time_chunks<<<static_cast<unsigned>(sides.of_sm.size()), 1,
                static_cast<std::size_t>(whole_sm(time_chunks))>>>(
      {static_cast<std::byte*>(memory), static_cast<std::int64_t>(chunks), numbers_in(tables),
       static_cast<float*>(times.data()), 0U});
  gpu::require(cudaGetLastError(), "cannot time chunks");
  const auto cycles = fetched<float>(times, 2 * chunks);
  std::vector<std::uint8_t> homes(chunks);
  for (std::size_t c = 0; c < chunks; ++c) homes[c] = cycles[c] < cycles[chunks + c] ? 0 : 1;
  return homes;
}

chunk_reader::chunk_reader(const l2_sides& sides, const std::byte* memory,
                           std::array<const std::vector<std::int32_t>*, 2> lists, int passes)
    : memory_(memory),
      chunks_(std::ssize(*lists[0])),
      passes_(passes),
      blocks_(static_cast<unsigned>(sides.of_sm.size())),
      tables_(tables_of(sides)) {
  for (const auto* list : lists) tables_.push_back(uploaded(*list));
  tables_.emplace_back(sizeof(unsigned));
}

void chunk_reader::run(cudaStream_t stream) const {
  read_chunks<<<blocks_, reader_threads, static_cast<std::size_t>(whole_sm(read_chunks)), stream>>>(
      {memory_,
       {static_cast<const std::int32_t*>(tables_[3].data()),
        static_cast<const std::int32_t*>(tables_[4].data())},
       chunks_,
       passes_,
       numbers_in(tables_),
       static_cast<unsigned*>(tables_[5].data())});
  gpu::require(cudaGetLastError(), "cannot read chunks");
}

}  // namespace untax::bench
