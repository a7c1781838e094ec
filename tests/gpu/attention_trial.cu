#include "attention_trial.cuh"

#include <algorithm>

#include <untax/memory/cuda_memory.cuh>

#include "ops/flash_decode/planning.hpp"

namespace gpu_test {
namespace {

using untax::extent;
using untax::matrix;

/// A number that looks random.
__device__ unsigned long long mixed(unsigned long long x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  return x ^ (x >> 27U);
}

__global__ void stall(const unsigned long long* account, int rank, unsigned most_microseconds) {
  const auto nanoseconds =
      mixed(account[0] * 64 + static_cast<unsigned>(rank)) % (1000ULL * most_microseconds + 1);
  const std::uint64_t begin = untax::cuda_memory::now();
  while (untax::cuda_memory::now() - begin < nanoseconds) {
  }
}

/// The kernel behind, where it may begin early, meets the lengths of before.
__global__ void choose_lengths(const unsigned long long* account, const std::int32_t* all, int sets,
                               int batch, std::int32_t* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  const std::uint64_t begin = untax::cuda_memory::now();
  while (untax::cuda_memory::now() - begin < 10'000) {
  }
  const auto set = static_cast<int>(account[0] % static_cast<unsigned>(sets));
  for (int b = static_cast<int>(threadIdx.x); b < batch; b += static_cast<int>(blockDim.x))
    to[b] = all[set * batch + b];
}

__global__ void compare(unsigned long long* account, const std::uint16_t* expected, int sets,
                        std::int64_t count, const std::uint16_t* found) {
  const auto set = static_cast<std::int64_t>(account[0] % static_cast<unsigned>(sets));
  unsigned long long wrong = 0;
  for (auto i = static_cast<std::int64_t>(threadIdx.x); i < count; i += blockDim.x)
    wrong += expected[set * count + i] != found[i] ? 1 : 0;
  if (wrong > 0) atomicAdd(account + 1, wrong);
  __syncthreads();
  if (threadIdx.x == 0) ++account[0];
}

std::size_t bytes_of(const extent& size) {
  return static_cast<std::size_t>(size.rows * size.cols) * 2;
}
std::size_t bytes_of(const matrix& m) { return bytes_of({m.rows, m.cols}); }

}  // namespace

attention_trial::attention_trial(untax::world& w, const stream& s,
                                 const untax::attention_work& work,
                                 const untax::flash_decode_options& options, std::uint64_t seed)
    : world_(&w),
      stream_(&s),
      work_(work),
      inputs_(work, w.size(), seed),
      host_keys_(bytes_of(cache_extent(work.problem))),
      host_values_(host_keys_.size()),
      q_(on_device({work.problem.batch * work.problem.heads, work.problem.head_dim})),
      keys_(on_device(cache_extent(work.problem))),
      values_(on_device(cache_extent(work.problem))),
      out_(on_device({q_.rows, q_.cols})),
      op_([&]() -> untax::flash_decode {
        const auto batch = static_cast<std::size_t>(work.problem.batch);
        const auto pages = static_cast<std::size_t>(pages_of_sequence(work.problem));
        ok(cudaMalloc(&lengths_, batch * sizeof(std::int32_t)));
        ok(cudaMalloc(&table_, std::max<std::size_t>(batch * pages, 1) * sizeof(std::int32_t)));
        ok(cudaMalloc(&account_, 2 * sizeof(*account_)));
        ok(cudaMemset(account_, 0, 2 * sizeof(*account_)));
        ok(cudaDeviceSynchronize());
        // Last, and it waits for all ranks: no rank allocates while kernels of others wait for its
        // kernel.
        return {w, work.problem, options};
      }()) {
  refresh(seed);
}

attention_trial::~attention_trial() {
  cudaStreamSynchronize(stream_->get());
  for (void* memory : {q_.data, keys_.data, values_.data, out_.data, static_cast<void*>(lengths_),
                       static_cast<void*>(table_), static_cast<void*>(account_),
                       static_cast<void*>(length_sets_), static_cast<void*>(expected_)})
    cudaFree(memory);
}

matrix attention_trial::on_device(const extent& size) const {
  void* data = nullptr;
  ok(cudaMalloc(&data, std::max<std::size_t>(bytes_of(size), 256)));
  return {data, work_.problem.type, size.rows, size.cols};
}

void attention_trial::refresh(std::uint64_t seed) {
  inputs_ = untax::attention_inputs(work_, world_->size(), seed);
  const auto type = work_.problem.type;
  std::vector<std::byte> q(bytes_of(q_));
  inputs_.fill_queries({q.data(), type, q_.rows, q_.cols});
  std::vector<std::int32_t> lengths;
  std::vector<std::int32_t> table;
  inputs_.fill_cache(world_->rank(), {host_keys_.data(), type, keys_.rows, keys_.cols},
                     {host_values_.data(), type, values_.rows, values_.cols}, lengths, table);
  copy(static_cast<std::byte*>(q_.data), q.data(), q.size(), *stream_);
  copy(static_cast<std::byte*>(keys_.data), host_keys_.data(), host_keys_.size(), *stream_);
  copy(static_cast<std::byte*>(values_.data), host_values_.data(), host_values_.size(), *stream_);
  copy(lengths_, lengths.data(), lengths.size(), *stream_);
  copy(table_, table.data(), table.size(), *stream_);
}

void attention_trial::run() {
  const untax::attention_shard shard{.keys = as_const(keys_),
                                     .values = as_const(values_),
                                     .lengths = lengths_,
                                     .page_table = work_.problem.page_size > 0 ? table_ : nullptr};
  op_.run(as_const(q_), shard, out_, stream_->get());
}

void attention_trial::launch() {
  ok(cudaMemsetAsync(out_.data, 0xff, bytes_of(out_), stream_->get()));
  run();
}

void attention_trial::launch_and_compare(unsigned most_microseconds) {
  const cudaStream_t on = stream_->get();
  const auto batch = static_cast<int>(work_.problem.batch);
  ok(cudaMemsetAsync(out_.data, 0xff, bytes_of(out_), on));
  stall<<<1, 1, 0, on>>>(account_, world_->rank(), most_microseconds);
  choose_lengths<<<1, 32, 0, on>>>(account_, length_sets_, sets_, batch, lengths_);
  run();
  compare<<<1, 1024, 0, on>>>(account_, expected_, sets_, out_.rows * out_.cols,
                              static_cast<const std::uint16_t*>(out_.data));
  ok(cudaPeekAtLastError());
}

void attention_trial::expect_lengths(const std::vector<std::vector<std::int32_t>>& sets) {
  sets_ = static_cast<int>(sets.size());
  const auto batch = static_cast<std::size_t>(work_.problem.batch);
  const auto count = static_cast<std::size_t>(out_.rows * out_.cols);
  ok(cudaMalloc(&length_sets_, sets.size() * batch * sizeof(std::int32_t)));
  ok(cudaMalloc(&expected_, sets.size() * count * sizeof(std::uint16_t)));
  for (std::size_t i = 0; i < sets.size(); ++i) {
    copy(length_sets_ + i * batch, sets[i].data(), batch, *stream_);
    copy(lengths_, sets[i].data(), batch, *stream_);
    launch();
    copy(expected_ + i * count, static_cast<const std::uint16_t*>(out_.data), count, *stream_);
  }
}

unsigned long long attention_trial::wrong() const { return values(account_, 2, *stream_)[1]; }

std::vector<std::uint16_t> attention_trial::bits() const {
  return values(static_cast<const std::uint16_t*>(out_.data),
                static_cast<std::size_t>(out_.rows * out_.cols), *stream_);
}

double attention_trial::relative_error() const {
  const std::vector<std::uint16_t> found = bits();
  return untax::relative_error({found.data(), work_.problem.type, out_.rows, out_.cols},
                               inputs_.result());
}

}  // namespace gpu_test
