#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <untax/core/half.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/pending_waits.cuh"
#include "engines/gpu/decode_step/step_arguments.hpp"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/sm90/ptx/sum_words.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"
#include "engines/gpu/words/partial_words.cuh"

namespace untax::gpu {

/// Warps of a block: those that multiply, one that loads weights and keys, and three that load
/// rows.
inline constexpr int row_warps = 3;
inline constexpr int step_warps = step_shape::warps + 1 + row_warps;
inline constexpr int step_threads = step_warps * 32;
inline constexpr int step_multipliers = step_shape::warps * 32;
inline constexpr int most_ring_stages = 26;
inline constexpr int most_activation_stages = 16;

/// Elements of weights, of the cache and of rows.
using step_value = __nv_bfloat16;

/// The last part of a block's shared memory.
struct step_numbers {
  stage_barrier full[most_ring_stages];
  stage_barrier empty[most_ring_stages];
  stage_barrier rows_full[most_activation_stages];
  stage_barrier rows_empty[most_activation_stages];
  stage_barrier vectors_full[step_shape::vector_stages];
  stage_barrier vectors_empty[step_shape::vector_stages];
  step_shape::units shares[4];             ///< of this block, by product
  float inverse[step_shape::most_tokens];  ///< 1 / root mean square of each token's residual
  std::int32_t lengths[step_shape::most_tokens];
  std::int32_t item_counts[2];
  std::int32_t failed;  ///< a wait of the warps that multiply has failed
};
static_assert(sizeof(step_numbers) <= 1024);

/// A position in a ring of any number of stages, as `ring_cursor`.
struct step_cursor {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ void advance(int stages) {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
  __device__ void advance_by(int count, int stages) {
    for (stage += count; stage >= stages; stage -= stages) parity ^= 1;
  }
};

struct key_item;

/// A block's view of its shared memory and of the step.
struct step_block {
  const step_arguments& a;
  std::byte* shared;

  [[nodiscard]] __device__ const step_shape& shape() const { return a.shape; }
  [[nodiscard]] __device__ std::byte* stage(int i) const {
    return shared + i * step_shape::stage_bytes;
  }
  [[nodiscard]] __device__ std::byte* rows(int i) const {
    return shared + a.shape.activations_at() + i * a.shape.tokens * step_shape::row_pitch;
  }
  [[nodiscard]] __device__ float* sums() const {
    return reinterpret_cast<float*>(shared + a.shape.sums_at());
  }
  /// Four elements of the residual stream at a time: [units, tokens, 2].
  [[nodiscard]] __device__ uint2* residual() const {
    return reinterpret_cast<uint2*>(shared + a.shape.residual_at());
  }
  [[nodiscard]] __device__ std::byte* queries() const { return shared + a.shape.queries_at(); }
  [[nodiscard]] __device__ std::byte* vectors(int i) const {
    return shared + a.shape.vectors_at() + i * a.shape.vector_bytes();
  }
  [[nodiscard]] __device__ key_item* items() const {
    return reinterpret_cast<key_item*>(shared + a.shape.items_at());
  }
  [[nodiscard]] __device__ step_shape::units share(step_product which) const {
    return numbers().shares[static_cast<int>(which)];
  }
  [[nodiscard]] __device__ step_numbers& numbers() const {
    return *reinterpret_cast<step_numbers*>(shared + a.shape.numbers_at());
  }
};

/// The part of a wait (`wait_for_parts`) that says for whom it is: blocks of this rank.
struct own_arrival {
  std::uint64_t expected = 1;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::barrier;

  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// A wait for all blocks of this rank's grid, of which a warp's lanes poll the same counter.
struct grid_arrivals : own_arrival {
  const std::uint64_t* counter;

  __device__ grid_arrivals(const std::uint64_t* counter_of_all, std::uint64_t count)
      : own_arrival{.expected = count}, counter(counter_of_all) {}

  [[nodiscard]] __device__ std::uint64_t look() {
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                 : "=l"(seen)
                 : "l"(__cvta_generic_to_global(counter))
                 : "memory");
    return seen >= expected ? 1 : 0;
  }
};

/// A lane's wait for a part of attention's result: two words, or nothing. They are their own
/// signal.
struct part_arrival : own_arrival {
  using words = partial_words<float, false>;

  const uint4* at = nullptr;
  uint4 sums = {};
  uint4 numbers = {};

  __device__ part_arrival() { what = verb::acquire; }
  [[nodiscard]] __device__ std::uint64_t look() {
    sums = load_sum_words_if(at != nullptr, at);
    numbers = load_sum_words_if(at != nullptr, at + 1);
    return words::have_arrived(sums) && words::have_arrived(numbers) ? 1 : 0;
  }
};

/// The slow part of a wait of a warp. Not inlined, so that this rarely run code is not fetched with
/// the code around it.
template <class Arrival>
[[nodiscard]] __device__ __noinline__ bool wait_for_blocks(const run_arguments& run, Arrival& mine,
                                                           int slot) {
  lazy_watch watch(device_watch(run.world, slot));
  return wait_for_parts(mine, watch, run, run.operator_name()) == wait_outcome::ok;
}

[[nodiscard]] __device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x) % 32; }

/// Where all threads that multiply meet.
__device__ inline void meet_multipliers() {
  asm volatile("barrier.sync 1, %0;" : : "n"(step_multipliers) : "memory");
}

/// Copies bytes, a multiple of 16, from global to shared memory by TMA.
__device__ inline void bulk_load(void* to, const void* from, std::uint32_t bytes,
                                 stage_barrier& arrived) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes),
        "r"(shared_address(&arrived.word))
      : "memory");
}
/// Arrives at the barrier when the copies that this thread has issued before (`copy_16_bytes`) are
/// complete.
__device__ inline void arrive_behind_copies(stage_barrier& arrived) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
               :
               : "r"(shared_address(&arrived.word))
               : "memory");
}

/// Loads a box of panels (`panel_map_of`) that is read once. Its first row is `row` of panel
/// `panel`.
__device__ inline void panel_load(void* to, const CUtensorMap& panels, int row, int panel,
                                  stage_barrier& arrived) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;"
      :
      : "r"(shared_address(to)), "l"(&panels), "r"(0), "r"(row), "r"(panel),
        "r"(shared_address(&arrived.word)), "l"(evict_first)
      : "memory");
}

/// Where TMA puts a byte of a panel, which begins at a multiple of 1024 bytes.
[[nodiscard]] __device__ inline int swizzled(int offset) { return offset ^ (offset >> 3 & 0x70); }

/// The inverse root mean square of a token's residual stream, from the squares of all blocks, by a
/// warp.
[[nodiscard]] __device__ inline float inverse_of(const step_arguments& a, int token, int lane) {
  const int blocks = a.shape.blocks;
  const float* const squares = a.squares + token * blocks;
  float sum = 0;
  for (int first = lane; first < blocks; first += 32 * 5) {
    float parts[5];
#pragma unroll
    for (int i = 0; i < 5; ++i)
      parts[i] = first + 32 * i < blocks ? __ldcg(squares + first + 32 * i) : 0;
#pragma unroll
    for (const float part : parts) sum += part;
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
  return rsqrtf(sum / static_cast<float>(a.shape.hidden) + a.epsilon);
}

}  // namespace untax::gpu
