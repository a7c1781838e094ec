#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "decoder/backend.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/norm/elements.cuh"
#include "ops/common/own_stream.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/graph.hpp"
#include "src/symmetric/cuda/launching.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax {
namespace {

constexpr int threads = 256;
constexpr int warp = 32;
constexpr unsigned everybody = 0xffffffffU;

__device__ float loaded(const void* elements, dtype type, std::int64_t i) {
  switch (type) {
    case dtype::f32:
      return static_cast<const float*>(elements)[i];
    case dtype::f16:
      return __half2float(static_cast<const __half*>(elements)[i]);
    default:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(elements)[i]);
  }
}

/// A block has a row, whose elements are a multiple of eight.
template <class T>
__global__ void embed_rows(const_matrix embedding, index_range share, const std::int32_t* tokens,
                           float scale, matrix to) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t token = tokens[row];
  const bool is_here = token >= share.begin && token < share.end;
  const auto* const from =
      reinterpret_cast<const uint4*>(static_cast<const T*>(embedding.data) +
                                     (is_here ? (token - share.begin) * embedding.stride : 0));
  auto* const target = reinterpret_cast<uint4*>(static_cast<T*>(to.data) + row * to.stride);
  for (std::int64_t i = threadIdx.x; i < to.cols / 8; i += threads) {
    gpu::eight<T> x = gpu::eight<T>::of(from[i]);
    for (float& value : x.v) value = is_here ? scale * value : 0;
    target[i] = x.pairs();
  }
}

/// A block has a row of `chunks` times 16 bytes. A row that does not exist is zeros.
__global__ void copy_rows(const uint4* from, std::int64_t from_rows, const std::int32_t* rows,
                          uint4* to, int chunks) {
  const std::int64_t row = rows[blockIdx.x];
  const bool is_there = row >= 0 && row < from_rows;
  for (int i = static_cast<int>(threadIdx.x); i < chunks; i += threads) {
    to[static_cast<std::int64_t>(blockIdx.x) * chunks + i] =
        is_there ? from[row * chunks + i] : make_uint4(0, 0, 0, 0);
  }
}

/// A block has a token.
__global__ void find_windows(windowed_keys keys, std::int32_t* lengths, std::int32_t* rows) {
  const std::int64_t token = blockIdx.x;
  const std::int64_t length = keys.lengths[token];
  const std::int64_t count = length < keys.window ? length : keys.window;
  if (threadIdx.x == 0) lengths[token] = static_cast<std::int32_t>(count);
  for (std::int64_t j = threadIdx.x; j < count; j += threads) {
    const std::int64_t key = length - count + j;
    const std::int64_t page = keys.page_table[token * keys.sequence_pages + key / keys.page_size];
    rows[token * keys.window + j] =
        static_cast<std::int32_t>(page * keys.page_size + key % keys.page_size);
  }
}

/// The larger score; NaN is the largest, and of equal ones the first token wins.
__device__ token_score better(token_score a, token_score b) {
  const bool a_wins = isnan(a.score)       ? !isnan(b.score) || a.token < b.token
                      : isnan(b.score)     ? false
                      : a.score != b.score ? a.score > b.score
                                           : a.token < b.token;
  return a_wins ? a : b;
}

__device__ token_score best_of_warp(token_score mine) {
  for (int step = warp / 2; step > 0; step /= 2) {
    const token_score other{.score = __shfl_xor_sync(everybody, mine.score, step),
                            .token = __shfl_xor_sync(everybody, mine.token, step)};
    mine = better(mine, other);
  }
  return mine;
}

/// Blocks of a cluster that share a row of logits, and their threads: a row has up to 512 KB, which
/// a single block reads in a tenth of a millisecond.
constexpr int row_blocks = 8;
constexpr int row_threads = 1024;

/// A cluster has a row of at least one logit.
__global__ void __cluster_dims__(row_blocks, 1, 1) __launch_bounds__(row_threads)
    find_best_of_rows(const_matrix logits, std::int64_t first, token_score* best) {
  __shared__ token_score of_warps[row_threads / warp];
  __shared__ token_score of_blocks[row_blocks];
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  const std::int64_t number = blockIdx.x / row_blocks;
  const std::int64_t row = number * logits.stride;
  const auto score_of = [&](std::int64_t c) {
    return token_score{.score = loaded(logits.data, logits.type, row + c),
                       .token = static_cast<std::int32_t>(first + c)};
  };
  constexpr std::int64_t step = row_blocks * row_threads;
  const std::int64_t own = std::int64_t{cluster.block_rank()} * row_threads + threadIdx.x;
  token_score mine = score_of(own < logits.cols ? own : 0);
#pragma unroll 4
  for (std::int64_t c = own + step; c < logits.cols; c += step) mine = better(mine, score_of(c));
  mine = best_of_warp(mine);
  if (threadIdx.x % warp == 0) of_warps[threadIdx.x / warp] = mine;
  // Shared memory of a block may be written by others from its start on; this is where all have
  // started.
  cluster.sync();
  if (threadIdx.x < warp) {
    mine = best_of_warp(of_warps[threadIdx.x]);
    if (threadIdx.x == 0) cluster.map_shared_rank(of_blocks, 0)[cluster.block_rank()] = mine;
  }
  cluster.sync();
  if (cluster.block_rank() != 0 || threadIdx.x >= warp) return;
  mine = best_of_warp(of_blocks[threadIdx.x % row_blocks]);
  if (threadIdx.x == 0) best[number] = mine;
}
static_assert(row_threads / warp == warp);

__global__ void find_best_of_ranks(const token_score* best, int ranks, std::int64_t stride,
                                   std::int32_t* tokens, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  token_score winner = best[i];
  for (int r = 1; r < ranks; ++r) winner = better(winner, best[r * stride + i]);
  tokens[i] = winner.token;
}

/// A block has a row of a rank's logits.
__global__ void join_rows(gathered_logits from, float cap, matrix to) {
  const std::int64_t row = blockIdx.x;
  const int rank = static_cast<int>(blockIdx.y);
  const std::int64_t begin = from.begins[rank];
  const std::int64_t width = from.begins[rank + 1] - begin;
  const std::int64_t start = rank * from.part + row * width;
  float* const target = static_cast<float*>(to.data) + row * to.stride + begin;
  for (std::int64_t c = threadIdx.x; c < width; c += threads) {
    const float logit = loaded(from.data, from.type, start + c);
    target[c] = cap > 0 ? cap * tanhf(logit / cap) : logit;
  }
}

/// Memory of the host from which copies run by themselves, so that a caller of `send` never waits
/// for the work ahead in the stream: only for the copy that had the same slot before.
class pinned_slots {
 public:
  static constexpr std::size_t slot_bytes = std::size_t{1} << 18;

  pinned_slots() {
    gpu::require(cudaMallocHost(&data_, slots * slot_bytes), "the decoder has no pinned memory");
    for (cudaEvent_t& event : copied_) {
      gpu::require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                   "the decoder has no event");
    }
  }
  pinned_slots(const pinned_slots&) = delete;
  pinned_slots& operator=(const pinned_slots&) = delete;
  ~pinned_slots() {
    for (cudaEvent_t event : copied_) cudaEventDestroy(event);
    cudaFreeHost(data_);
  }

  void send(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    for (std::size_t at = 0; at < bytes; at += slot_bytes) {
      const std::size_t part = std::min(slot_bytes, bytes - at);
      gpu::require(cudaEventSynchronize(copied_[next_]), "a copy of the decoder failed");
      std::byte* const slot = static_cast<std::byte*>(data_) + next_ * slot_bytes;
      std::memcpy(slot, static_cast<const std::byte*>(from) + at, part);
      gpu::require(cudaMemcpyAsync(static_cast<std::byte*>(to) + at, slot, part,
                                   cudaMemcpyHostToDevice, stream),
                   "the decoder cannot copy");
      gpu::require(cudaEventRecord(copied_[next_], stream), "the decoder cannot copy");
      next_ = (next_ + 1) % slots;
    }
  }

 private:
  static constexpr std::size_t slots = 16;
  void* data_ = nullptr;
  cudaEvent_t copied_[slots] = {};
  std::size_t next_ = 0;
};

class device_backend final : public decoder_backend {
 public:
  explicit device_backend(world& w) : job_(w.stable_view()), rank_(w.rank()) { load(); }
  ~device_backend() override { end_replays(); }

  stream_ref begin(stream_ref given) override {
    job_.check();  // a graph is launched without the operators that would ask
    return own_.unless(given);
  }
  void finish(stream_ref given) override {
    if (given.handle != nullptr) return;
    own_.wait(fmt::format("rank {}: decoder: a run failed", rank_));
    job_.check();
  }

  void replay(std::int64_t key, stream_ref stream, const replayed& body) override {
    auto* const on = static_cast<cudaStream_t>(stream.handle);
    const bool can_capture = on != cudaStreamLegacy && on != cudaStreamPerThread;
    if (!can_capture || gpu::captures(on) || job_.ranks_per_gpu() > 1) return body(stream);
    const auto [graph, first] = graphs_.try_emplace(key);
    if (first) return body(stream);
    if (!graph->second) {
      graph->second.emplace(on, [&] { body(stream); });
      // A graph allocates while it is made and loaded, which may wait for kernels of peers. None of
      // these may wait for this rank meanwhile.
      gpu::require(cudaStreamSynchronize(on), "a graph of a step of the decoder cannot be loaded");
      job_.barrier();
    }
    graph->second->launch(on);
  }
  void end_replays() noexcept override { graphs_.clear(); }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    auto memory = std::make_shared<gpu::scratch_memory>();
    void* const data = memory->allocate(std::max<std::size_t>(bytes, 1), "decoder");
    return {std::move(memory), data};
  }
  void upload(void* to, const void* from, std::size_t bytes, stream_ref stream) override {
    if (stream.handle != nullptr) {
      slots_.send(to, from, bytes, static_cast<cudaStream_t>(stream.handle));
      return;
    }
    // Weights and tables, before anything runs: kernels of other streams have to find them.
    copy_by(to, from, bytes, cudaMemcpyHostToDevice, {});
    wait_for(cudaStreamLegacy, "the decoder cannot copy");
  }
  void copy(void* to, const void* from, std::size_t bytes, stream_ref stream) override {
    copy_by(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  void download(void* to, const void* from, std::size_t bytes, stream_ref stream) override {
    const stream_ref on = own_.unless(stream);
    copy_by(to, from, bytes, cudaMemcpyDeviceToHost, on);
    wait_for(on, fmt::format("rank {}: decoder: a run failed", rank_));
    job_.check();
  }

  void embed(const const_matrix& embedding, const index_range& share, const std::int32_t* tokens,
             float scale, const matrix& to, stream_ref stream) override {
    launch(to.type == dtype::f16 ? embed_rows<__half> : embed_rows<__nv_bfloat16>, to.rows, 1,
           stream, embedding, share, tokens, scale, to);
  }
  void gather_rows(const const_matrix& from, const std::int32_t* rows, const matrix& to,
                   stream_ref stream) override {
    const auto chunks = static_cast<int>(static_cast<std::size_t>(to.cols) * size_of(to.type) / 16);
    launch(copy_rows, to.rows, 1, stream, static_cast<const uint4*>(from.data), from.rows, rows,
           static_cast<uint4*>(to.data), chunks);
  }
  void open_windows(const windowed_keys& keys, std::int64_t tokens, std::int32_t* lengths,
                    std::int32_t* rows, stream_ref stream) override {
    launch(find_windows, tokens, 1, stream, keys, lengths, rows);
  }
  void best_of_rows(const const_matrix& logits, std::int64_t first, token_score* best,
                    stream_ref stream) override {
    launch_by(row_threads, find_best_of_rows, row_blocks * logits.rows, 1, stream, logits, first,
              best);
  }
  void best_of_ranks(const token_score* best, int ranks, std::int64_t stride, std::int32_t* tokens,
                     std::int64_t count, stream_ref stream) override {
    launch(find_best_of_ranks, ceil_div(count, std::int64_t{threads}), 1, stream, best, ranks,
           stride, tokens, count);
  }
  void join_logits(const gathered_logits& from, float cap, const matrix& to,
                   stream_ref stream) override {
    launch(join_rows, to.rows, from.ranks, stream, from, cap, to);
  }

 private:
  static void load() {
    for (const void* kernel :
         {reinterpret_cast<const void*>(embed_rows<__half>),
          reinterpret_cast<const void*>(embed_rows<__nv_bfloat16>),
          reinterpret_cast<const void*>(copy_rows), reinterpret_cast<const void*>(find_windows),
          reinterpret_cast<const void*>(find_best_of_rows),
          reinterpret_cast<const void*>(find_best_of_ranks),
          reinterpret_cast<const void*>(join_rows)}) {
      gpu::load_kernel(kernel, "cannot load a kernel of the decoder");
    }
  }

  static void copy_by(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                      stream_ref stream) {
    if (bytes == 0) return;
    gpu::require(cudaMemcpyAsync(to, from, bytes, kind, static_cast<cudaStream_t>(stream.handle)),
                 "the decoder cannot copy");
  }

  template <class... Parameters>
  static void launch(void (*kernel)(Parameters...), std::int64_t blocks, int parts,
                     stream_ref stream, const std::type_identity_t<Parameters>&... parameters) {
    launch_by(threads, kernel, blocks, parts, stream, parameters...);
  }
  template <class... Parameters>
  static void launch_by(int block_threads, void (*kernel)(Parameters...), std::int64_t blocks,
                        int parts, stream_ref stream,
                        const std::type_identity_t<Parameters>&... parameters) {
    if (blocks == 0) return;
    cudaLaunchConfig_t how = gpu::launch_of(static_cast<int>(blocks), block_threads, 0,
                                            static_cast<cudaStream_t>(stream.handle));
    how.gridDim.y = static_cast<unsigned>(parts);
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&parameters))...};
    gpu::require(cudaLaunchKernelExC(&how, reinterpret_cast<const void*>(kernel), pointers),
                 "a kernel of the decoder cannot be launched");
  }

  world& job_;
  int rank_;
  std::map<std::int64_t, std::optional<gpu::graph>> graphs_;  ///< empty after the first call
  own_stream own_;
  pinned_slots slots_;
};

}  // namespace

std::unique_ptr<decoder_backend> device_decoder_backend(world& w) {
  w.use_device();
  return std::make_unique<device_backend>(w);
}

}  // namespace untax
