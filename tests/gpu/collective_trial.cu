#include "collective_trial.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include <untax/core/half.hpp>
#include <untax/core/reduction.hpp>
#include <untax/memory/cuda_memory.cuh>

namespace gpu_test {
namespace {

using untax::array_view;
using untax::dtype;
using untax::reduction;

constexpr std::size_t margin = 128;  // bytes around a result that no kernel may touch
constexpr int threads = 256;
constexpr int blocks = 64;

/// A number that looks random.
__device__ std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

__device__ std::uint32_t narrowed(dtype type, float value) {
  switch (type) {
    case dtype::f16:
      return __half_as_ushort(__float2half_rn(value));
    case dtype::bf16:
      return __bfloat16_as_ushort(__float2bfloat16_rn(value));
    default:
      return __float_as_uint(value);
  }
}
__device__ float widened(dtype type, std::uint32_t bits) {
  switch (type) {
    case dtype::f16:
      return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
    case dtype::bf16:
      return __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(bits)));
    default:
      return __uint_as_float(bits);
  }
}

/// Element `i` of the input of a rank in an epoch.
__device__ std::uint32_t input(dtype type, std::uint64_t epoch, int rank, std::int64_t i) {
  const std::uint64_t seed = epoch * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(rank);
  const auto number = mixed(mixed(seed) + static_cast<std::uint64_t>(i));
  const float between = static_cast<float>(number >> 40U) * 0x1p-24F;  // 0 and 1
  return narrowed(type, 8 * between - 4);
}

__device__ std::uint32_t get(dtype type, const std::byte* from, std::int64_t i) {
  if (type == dtype::f32) return reinterpret_cast<const std::uint32_t*>(from)[i];
  return reinterpret_cast<const std::uint16_t*>(from)[i];
}
__device__ void put(dtype type, std::byte* to, std::int64_t i, std::uint32_t bits) {
  if (type == dtype::f32) {
    reinterpret_cast<std::uint32_t*>(to)[i] = bits;
  } else {
    reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(bits);
  }
}

__device__ std::int64_t first_index() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ std::int64_t all_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

/// 0xff everywhere is NaN in every type.
__global__ void poison(std::byte* memory, std::size_t bytes) {
  for (auto i = first_index(); i < static_cast<std::int64_t>(bytes); i += all_threads())
    memory[i] = std::byte{0xff};
}

__global__ void fill(std::byte* in, std::int64_t count, dtype type, int rank,
                     const std::uint64_t* epoch) {
  for (auto i = first_index(); i < count; i += all_threads())
    put(type, in, i, input(type, *epoch, rank, i));
}

__global__ void stall(const std::uint64_t* epoch, int rank, unsigned most_microseconds) {
  const auto number = mixed(*epoch * 64 + static_cast<std::uint64_t>(rank));
  const std::uint64_t nanoseconds = number % (std::uint64_t{most_microseconds} * 1000 + 1);
  const std::uint64_t begin = untax::cuda_memory::now();
  while (untax::cuda_memory::now() - begin < nanoseconds) {
  }
}

__global__ void check(const std::byte* out, const span* expected, int spans, dtype type,
                      reduction how, int ranks, const std::uint64_t* epoch, std::uint64_t* wrong) {
  unsigned long long found = 0;
  for (int s = 0; s < spans; ++s) {
    const span part = expected[s];
    for (auto i = first_index(); i < part.count; i += all_threads()) {
      const std::int64_t at = part.index + i;
      std::uint32_t right = 0;
      if (part.rank >= 0) {
        right = input(type, *epoch, part.rank, at);
      } else {
        float sum = widened(type, input(type, *epoch, 0, at));
        for (int rank = 1; rank < ranks; ++rank)
          sum = untax::combined(how, sum, widened(type, input(type, *epoch, rank, at)));
        right = narrowed(type, sum);
      }
      if (get(type, out, part.begin + i) != right) ++found;
    }
  }
  if (found > 0) atomicAdd(reinterpret_cast<unsigned long long*>(wrong), found);
}

/// Counts bytes that are not poisoned any more.
__global__ void check_poison(const std::byte* memory, std::size_t bytes, std::uint64_t* wrong) {
  for (auto i = first_index(); i < static_cast<std::int64_t>(bytes); i += all_threads()) {
    if (memory[i] != std::byte{0xff}) atomicAdd(reinterpret_cast<unsigned long long*>(wrong), 1ULL);
  }
}

__global__ void next_epoch(std::uint64_t* epoch) { ++*epoch; }

/// Elements from `begin` on that come from where they follow each other.
std::int64_t run_length(const untax::collective_entry& entry,
                        const untax::collective_problem& problem, int ranks, int rank,
                        std::int64_t begin, std::int64_t end) {
  const untax::origin first = entry.origin_of(problem, ranks, rank, begin);
  std::int64_t low = 1;
  std::int64_t high = end - begin;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    const untax::origin o = entry.origin_of(problem, ranks, rank, begin + middle - 1);
    if (o.from == first.from && o.index == first.index + middle - 1) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

collective_trial::collective_trial(untax::world& w, const stream& s,
                                   const untax::collective_entry& entry,
                                   const untax::collective_problem& problem,
                                   const untax::collective_options& options,
                                   const trial_layout& layout)
    : world_(&w),
      stream_(&s),
      problem_(problem),
      in_count_(entry.in_count(problem, w.size(), w.rank())),
      out_count_(entry.out_count(problem, w.size(), w.rank())),
      in_place_(layout.in_place) {
  const std::size_t size = untax::size_of(problem.type);
  const auto bytes = [&](std::int64_t count) { return static_cast<std::size_t>(count) * size; };
  for (std::int64_t i = 0; i < out_count_;) {
    const untax::origin o = entry.origin_of(problem, w.size(), w.rank(), i);
    const std::int64_t length = run_length(entry, problem, w.size(), w.rank(), i, out_count_);
    expected_.push_back({i, length, o.from, o.index});
    i += length;
  }
  in_bytes_ = bytes(in_count_ + layout.in_offset) + 2 * margin;
  out_bytes_ = bytes(out_count_ + layout.out_offset) + 2 * margin;
  if (options.direct) {
    std::int64_t most = 0;
    for (int rank = 0; rank < w.size(); ++rank) {
      most = std::max({most, entry.in_count(problem, w.size(), rank),
                       entry.out_count(problem, w.size(), rank)});
    }
    const std::size_t all =
        bytes(most + std::max(layout.in_offset, layout.out_offset)) + 2 * margin;
    shared_in_ = w.allocate<std::byte>(all, "input");
    shared_out_ = w.allocate<std::byte>(all, "result");
    in_memory_ = shared_in_.local();
    out_memory_ = shared_out_.local();
  } else {
    ok(cudaMalloc(&in_memory_, in_bytes_));
    ok(cudaMalloc(&out_memory_, out_bytes_));
  }
  ok(cudaMalloc(&expected_there_, std::max<std::size_t>(expected_.size(), 1) * sizeof(span)));
  ok(cudaMalloc(&account_, sizeof(account)));
  in_ = in_memory_ + margin + bytes(layout.in_offset);
  out_ = layout.in_place ? in_ : out_memory_ + margin + bytes(layout.out_offset);
  copy(expected_there_, expected_.data(), expected_.size(), s);
  const account none{1, 0};
  copy(account_, &none, 1, s);
  // Last, and it waits for all ranks: no rank allocates while kernels of others wait for its
  // kernel.
  op_ = entry.make(w, problem, options);
}

collective_trial::~collective_trial() {
  op_.reset();
  cudaFree(expected_there_);
  cudaFree(account_);
  if (!shared_in_) {
    cudaFree(in_memory_);
    cudaFree(out_memory_);
    return;
  }
  try {
    if (world_->stopped()) return;
    world_->free(shared_out_);
    world_->free(shared_in_);
  } catch (const untax::error&) {
    // The world was stopped between the question and the call; its memory goes with it.
    return;
  }
}

void collective_trial::launch() { launch_after_stall(0); }

void collective_trial::launch_after_stall(unsigned most_microseconds) {
  const cudaStream_t on = stream_->get();
  const untax::dtype type = problem_.type;
  poison<<<blocks, threads, 0, on>>>(in_memory_, in_bytes_);
  poison<<<blocks, threads, 0, on>>>(out_memory_, out_bytes_);
  fill<<<blocks, threads, 0, on>>>(in_, in_count_, type, world_->rank(), &account_->epoch);
  if (most_microseconds > 0)
    stall<<<1, 1, 0, on>>>(&account_->epoch, world_->rank(), most_microseconds);
  op_->run({in_, type, in_count_}, {out_, type, out_count_}, on);
  check<<<blocks, threads, 0, on>>>(out_, expected_there_, static_cast<int>(expected_.size()), type,
                                    problem_.how, world_->size(), &account_->epoch,
                                    &account_->wrong);
  const std::byte* const memory = in_place_ ? in_memory_ : out_memory_;
  const std::byte* const end = out_ + static_cast<std::size_t>(out_count_) * untax::size_of(type);
  check_poison<<<1, threads, 0, on>>>(memory, static_cast<std::size_t>(out_ - memory),
                                      &account_->wrong);
  check_poison<<<1, threads, 0, on>>>(end, margin, &account_->wrong);
  next_epoch<<<1, 1, 0, on>>>(&account_->epoch);
  ok(cudaPeekAtLastError());
}

std::uint64_t collective_trial::wrong() const { return values(account_, 1, *stream_)[0].wrong; }

}  // namespace gpu_test
