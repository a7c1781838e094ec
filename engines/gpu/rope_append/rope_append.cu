#include "engines/gpu/rope_append/rope_append.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "engines/gpu/norm/elements.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax::gpu {
namespace {

/// Few, so that the heads of few tokens are spread over multiprocessors.
constexpr int rope_threads = 128;
constexpr unsigned everybody = 0xffffffffU;

/// One head of a token, of which a thread has eight elements, in a group of `lanes` threads of a
/// warp. All threads of a warp call all functions, since they exchange elements.
template <class T, int lanes>
class rope_head {
 public:
  explicit __device__ rope_head(const rope_arguments& given) : a_(given) {
    const int number = static_cast<int>(blockIdx.x) * (rope_threads / lanes) +
                       static_cast<int>(threadIdx.x) / lanes;
    part_ = static_cast<int>(threadIdx.x) % lanes;
    is_here_ = number < a_.tokens * a_.all_heads() && part_ * rope_elements < a_.head_dim;
    token_ = number / a_.all_heads();
    head_ = number % a_.all_heads();
    is_q_ = head_ < a_.heads;
    is_value_ = head_ >= a_.heads + a_.kv_heads;
  }

  /// Loads data that no run changes.
  __device__ void fetch_weights() {
    if (a_.bias != nullptr && is_here_) bias_ = chunks(a_.bias)[chunk_of(head_)];
    if (a_.q_norm != nullptr && is_here_ && !is_value_)
      weight_ = chunks(is_q_ ? a_.q_norm : a_.k_norm)[part_];
  }

  __device__ void run() {
    uint4 words = make_uint4(0, 0, 0, 0);
    if (is_here_) words = chunks(a_.qkv)[token_ * chunks_of(a_.qkv_stride) + chunk_of(head_)];
    const bool is_known = is_here_ && has_place();
    // Loads of the page and of the rotation do not wait for each other.
    const int page = is_known && a_.page_table != nullptr ? page_of_place() : 0;
    const bool turns = is_known && !is_value_ && part_ * rope_elements < a_.rotated;
    float cosines[rope_elements];
    float sines[rope_elements];
    if (turns) fetch_rotation(cosines, sines);

    eight<T> y = eight<T>::of(words);
    if (a_.bias != nullptr) y.add(eight<T>::of(bias_));
    if (a_.q_norm != nullptr) normalise(y);
    rotate(y, turns, cosines, sines);
    if (is_here_) store(y, is_known ? row_in_cache(page) : -1);
  }

 private:
  [[nodiscard]] static __device__ const uint4* chunks(const void* elements) {
    return static_cast<const uint4*>(elements);
  }
  [[nodiscard]] static __device__ std::int64_t chunks_of(std::int64_t elements) {
    return elements / rope_elements;
  }
  /// The place of this thread's elements in a row in which `heads_ahead` heads precede them.
  [[nodiscard]] __device__ std::int64_t chunk_of(int heads_ahead) const {
    return chunks_of(static_cast<std::int64_t>(heads_ahead) * a_.head_dim) + part_;
  }

  /// Whether position and sequence of the token are in range.
  [[nodiscard]] __device__ bool has_place() {
    position_ = a_.position[token_];
    sequence_ = a_.sequence == nullptr ? token_ : a_.sequence[token_];
    return position_ >= 0 && position_ < a_.keys && position_ < a_.positions && sequence_ >= 0 &&
           sequence_ < a_.batch;
  }
  [[nodiscard]] __device__ int page_of_place() const {
    const int each = (a_.keys - 1) / a_.page_size + 1;
    return a_.page_table[static_cast<std::int64_t>(sequence_) * each + position_ / a_.page_size];
  }
  /// The row of the token in the cache; -1 if there is no such page.
  [[nodiscard]] __device__ std::int64_t row_in_cache(int page) const {
    if (a_.page_table == nullptr) return static_cast<std::int64_t>(sequence_) * a_.keys + position_;
    if (page < 0 || page >= a_.pages) return -1;
    return static_cast<std::int64_t>(page) * a_.page_size + position_ % a_.page_size;
  }

  /// In halves a thread has eight angles; in pairs of neighbours it has four, each for two
  /// elements.
  __device__ void fetch_rotation(float (&cosines)[rope_elements],
                                 float (&sines)[rope_elements]) const {
    const int half = a_.rotated / 2;
    const float* const row = a_.rotations + static_cast<std::int64_t>(position_) * a_.rotated;
    const int first = a_.interleaved ? part_ * rope_elements / 2 : part_ * rope_elements % half;
    const float4* const of_cosines = reinterpret_cast<const float4*>(row + first);
    const float4* const of_sines = reinterpret_cast<const float4*>(row + half + first);
    put(of_cosines[0], cosines);
    put(of_sines[0], sines);
    if (a_.interleaved) return;
    put(of_cosines[1], cosines + 4);
    put(of_sines[1], sines + 4);
  }
  static __device__ void put(const float4& from, float* to) {
    to[0] = from.x;
    to[1] = from.y;
    to[2] = from.z;
    to[3] = from.w;
  }

  __device__ void normalise(eight<T>& y) const {
    float squares = 0;
#pragma unroll
    for (const float v : y.v) squares += v * v;
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2)
      squares += __shfl_xor_sync(everybody, squares, step);
    if (is_value_) return;
    const float scale = rsqrtf(squares / static_cast<float>(a_.head_dim) + a_.epsilon);
    const eight<T> weight = eight<T>::of(weight_);
#pragma unroll
    for (int i = 0; i < rope_elements; ++i) y.v[i] *= scale * (weight.v[i] + a_.norm_offset);
  }

  __device__ void rotate(eight<T>& y, bool turns, const float (&cosines)[rope_elements],
                         const float (&sines)[rope_elements]) const {
    if (a_.interleaved) {
      if (!turns) return;
#pragma unroll
      for (int i = 0; i < rope_elements / 2; ++i) {
        const float a = y.v[2 * i];
        const float b = y.v[2 * i + 1];
        y.v[2 * i] = a * cosines[i] - b * sines[i];
        y.v[2 * i + 1] = b * cosines[i] + a * sines[i];
      }
      return;
    }
    const int away = a_.rotated / 2 / rope_elements;
    const bool is_first = part_ < away;
    const int other = turns ? (is_first ? part_ + away : part_ - away) : part_;
#pragma unroll
    for (int i = 0; i < rope_elements; ++i) {
      const float partner = __shfl_sync(everybody, y.v[i], other, lanes);
      if (turns) y.v[i] = y.v[i] * cosines[i] + (is_first ? -partner : partner) * sines[i];
    }
  }

  __device__ void store(const eight<T>& y, std::int64_t row) const {
    if (is_q_) {
      static_cast<uint4*>(a_.q)[token_ * chunks_of(a_.q_stride) + chunk_of(head_)] =
          row >= 0 ? y.pairs() : make_uint4(0, 0, 0, 0);
      return;
    }
    if (row < 0) return;
    const int head = (head_ - a_.heads) % a_.kv_heads;
    void* const cache = is_value_ ? a_.value_cache : a_.key_cache;
    const std::int64_t stride = is_value_ ? a_.values_stride : a_.keys_stride;
    static_cast<uint4*>(cache)[row * chunks_of(stride) + chunk_of(head)] = y.pairs();
  }

  const rope_arguments& a_;
  int token_ = 0;
  int head_ = 0;
  int part_ = 0;  ///< of the head: the number of its eight elements
  int position_ = 0;
  int sequence_ = 0;
  bool is_here_ = false;  ///< the thread has elements
  bool is_q_ = false;
  bool is_value_ = false;
  uint4 bias_ = {};
  uint4 weight_ = {};
};

template <class T, int lanes>
__global__ void __launch_bounds__(rope_threads)
    rope_append_kernel(const __grid_constant__ rope_arguments given) {
  rope_head<T, lanes> head(given);
  if (given.constant_weights) head.fetch_weights();
  griddepcontrol_wait();
  griddepcontrol_launch_dependents();
  if (!given.constant_weights) head.fetch_weights();
  head.run();
}

struct rope_kernel {
  void (*function)(rope_arguments);
  int lanes;
};

template <class T>
rope_kernel kernel_of(int head_dim) {
  if (head_dim <= 8 * rope_elements) return {rope_append_kernel<T, 8>, 8};
  if (head_dim <= 16 * rope_elements) return {rope_append_kernel<T, 16>, 16};
  return {rope_append_kernel<T, 32>, 32};
}

rope_kernel kernel_for(const rope_arguments& a) {
  return a.type == dtype::f16 ? kernel_of<__half>(a.head_dim)
                              : kernel_of<__nv_bfloat16>(a.head_dim);
}

}  // namespace

void load_rope_append(const rope_arguments& a) {
  load_kernel(reinterpret_cast<const void*>(kernel_for(a).function),
              "cannot load the kernel of rope_append");
}

void start_rope_append(const rope_arguments& a, bool early, stream_ref stream) {
  const rope_kernel kernel = kernel_for(a);
  const std::int64_t heads = static_cast<std::int64_t>(a.tokens) * a.all_heads();
  const std::int64_t each = rope_threads / kernel.lanes;
  if (heads == 0) return;
  start_pdl(early, kernel.function, static_cast<int>((heads + each - 1) / each), rope_threads,
            static_cast<cudaStream_t>(stream.handle), "cannot start rope_append", a);
}

}  // namespace untax::gpu
