#pragma once

#include <cstdint>

#include <untax/core/half.hpp>

#include "engines/gpu/collectives/element.cuh"
#include "engines/gpu/flash_attention/block.cuh"
#include "engines/gpu/flash_attention/softmax.cuh"
#include "engines/gpu/flash_attention/store.cuh"
#include "engines/gpu/sm90/mma/descriptor.cuh"
#include "engines/gpu/sm90/mma/shapes.cuh"
#include "engines/gpu/sm90/mma/warpgroup.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"

namespace untax::gpu {

/// The type that stands for an element type in tensor core instructions.
template <class Element>
struct wgmma_element;
template <>
struct wgmma_element<bf16> {
  using type = __nv_bfloat16;
};
template <>
struct wgmma_element<f16> {
  using type = __half;
};

/// An MMA warpgroup. It computes attention for 64 rows of a tile.
///
/// It keeps the tensor cores busy: it issues the product with the next block of keys, and then the
/// product with the values of the current block. The tensor cores compute the second product while
/// the warpgroup computes weights from the new logits. The warpgroups take turns to issue, so that
/// one warpgroup uses the tensor cores while another computes exponentials.
template <class Element, flash_config config, bool causal>
class flash_consumer {
  using memory = flash_memory<config>;
  using element = typename wgmma_element<Element>::type;
  using softmax = flash_softmax<config.keys>;
  static constexpr int width = config.width;
  static constexpr int keys = config.keys;
  static constexpr bool take_turns = width < 256;

 public:
  __device__ flash_consumer(const flash_arguments& a, memory& shared, int group)
      : a_(a), shared_(shared), group_(group) {}

  __device__ void run() {
    // The last warpgroup passes the first turn to warpgroup 0, which cannot do this itself: a
    // barrier counts each warp once, so warps that wait at it cannot have arrived at it before.
    if (take_turns && group_ == config.groups - 1) named_barrier_arrive(turn_of(0));
    for (std::uint32_t parity = 0;; parity ^= 1U) {
      shared_.tile_full.wait(parity);
      const flash_tile& tile = shared_.tiles[parity];
      if (tile.rows == 0) break;
      attend(tile);
    }
    // Consumes the last turn that was passed to warpgroup 0, which it did not use.
    if (take_turns && group_ == 0) named_barrier_sync(turn_of(0));
  }

 private:
  [[nodiscard]] __device__ static int turn_of(int group) { return 1 + group; }
  __device__ void await_turn() const {
    if constexpr (take_turns) named_barrier_sync(turn_of(group_));
  }
  __device__ void pass_turn() const {
    if constexpr (take_turns)
      named_barrier_arrive(turn_of(group_ + 1 == config.groups ? 0 : group_ + 1));
  }

  __device__ __forceinline__ void attend(const flash_tile& tile) {
    float sums[width / 2];
#pragma unroll
    for (float& sum : sums) sum = 0;
    softmax state(a_.scale_to_base_2);
    if (tile.blocks == 0) {
      release(shared_.tile_empty);
    } else {
      attend_to_keys(tile, state, sums);
    }
    store_rows<Element, width>(a_, tile, group_ * flash_group_rows, state.most, state.total,
                               state.scale, sums);
  }

  __device__ __forceinline__ void attend_to_keys(const flash_tile& tile, softmax& state,
                                                 float (&sums)[width / 2]) {
    const int warp_row = group_ * flash_group_rows + static_cast<int>(threadIdx.x) % 128 / 32 * 16;
    const int row = warp_row + static_cast<int>(threadIdx.x) % 32 / 4;
    const int sees[2] = {tile.seen_by(row, causal), tile.seen_by(row + 8, causal)};
    const int seen_blocks = tile.seen_blocks(group_ * flash_group_rows, keys, causal);
    int block = tile.blocks - 1;
    std::uint32_t weights[keys / 16][4];
    std::uint32_t place = acquire();
    {
      float logits[keys / 2];
      wgmma_fence();
      multiply_keys(logits, place);
      wgmma_commit();
      wgmma_wait<0>();
      hold_sums(logits);
      release(shared_.empty[place]);
      if (block == 0) release(shared_.tile_empty);
      if (block >= seen_blocks) hide(logits, sees, block);
      float kept[2];
      state.weigh(logits, kept);
      pack(weights, logits);
    }
    place = acquire();
    --block;
#pragma unroll 1
    for (; block >= seen_blocks; --block)
      place = take_block<true>(place, block, sees, state, weights, sums);
#pragma unroll 1
    for (; block >= 0; --block) place = take_block<false>(place, block, sees, state, weights, sums);
    wgmma_fence();
    multiply_values(sums, weights, place);
    wgmma_commit();
    state.finish();
    wgmma_wait<0>();
    hold_sums(sums);
    release(shared_.empty[place]);
  }

  /// Computes the logits of `block`, and adds `weights` times the previous block's values to
  /// `sums`. Replaces `weights` by those of `block`. Returns the next ring stage, already acquired.
  template <bool hides>
  __device__ __forceinline__ std::uint32_t take_block(std::uint32_t keys_at, int block,
                                                      const int (&sees)[2], softmax& state,
                                                      std::uint32_t (&weights)[keys / 16][4],
                                                      float (&sums)[width / 2]) {
    float logits[keys / 2];
    await_turn();
    wgmma_fence();
    multiply_keys(logits, keys_at);
    wgmma_commit();
    const std::uint32_t values_at = acquire();
    wgmma_fence();
    multiply_values(sums, weights, values_at);
    wgmma_commit();
    pass_turn();
    wgmma_wait<1>();
    hold_sums(logits);
    release(shared_.empty[keys_at]);
    if (block == 0) release(shared_.tile_empty);
    if constexpr (hides) hide(logits, sees, block);
    float kept[2];
    state.weigh(logits, kept);
    hold_sums(logits);
    // Weights are computed while the tensor cores multiply values, and packed afterwards. The wait
    // for the next stage has a branch, which keeps ptxas from waiting for the tensor cores first.
    const std::uint32_t next = acquire();
    wgmma_wait<0>();
    hold_sums(sums);
    hold_sums(logits);
    release(shared_.empty[values_at]);
    pack(weights, logits);
#pragma unroll
    for (int i = 0; i < width / 2; ++i) sums[i] *= kept[i / 2 % 2];
    return next;
  }

  __device__ static void hide(float (&logits)[keys / 2], const int (&sees)[2], int block) {
    const int here[2] = {sees[0] - block * keys, sees[1] - block * keys};
    softmax::hide(logits, here);
  }

  __device__ static void pack(std::uint32_t (&weights)[keys / 16][4],
                              const float (&logits)[keys / 2]) {
#pragma unroll
    for (int i = 0; i < keys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        weights[i][j] = word_of_elements<Element>::narrow(logits + 8 * i + 2 * j);
    }
  }

  __device__ __forceinline__ void multiply_keys(float (&logits)[keys / 2],
                                                std::uint32_t place) const {
    const std::uint64_t queries =
        operand_descriptor(shared_.queries + group_ * (flash_group_rows * 128));
    const std::uint64_t rows = operand_descriptor(shared_.ring[place]);
#pragma unroll
    for (int k = 0; k < width; k += 16) {
      const int part = k / 64;
      multiply<element, keys>(logits,
                              advanced(queries, part * (memory::query_part_bytes / 2) + k % 64),
                              advanced(rows, part * (memory::part_bytes / 2) + k % 64), k > 0);
    }
  }

  __device__ __forceinline__ void multiply_values(float (&sums)[width / 2],
                                                  const std::uint32_t (&weights)[keys / 16][4],
                                                  std::uint32_t place) const {
    const std::uint64_t rows = deep_rows_descriptor(shared_.ring[place], memory::part_bytes);
#pragma unroll
    for (int i = 0; i < keys / 16; ++i)
      multiply_registers<element, width>(sums, weights[i], advanced(rows, i * 16 * 64), true);
  }

  /// Waits until TMA has filled the next ring stage, and returns that stage.
  [[nodiscard]] __device__ std::uint32_t acquire() {
    const std::uint32_t place = at_.stage;
    shared_.full[place].wait(at_.parity);
    at_.template advance<config.places>();
    return place;
  }
  /// Arrives at `empty` once for the calling warp. All of its lanes must call this.
  __device__ static void release(stage_barrier& empty) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) empty.arrive();
  }

  const flash_arguments& a_;
  memory& shared_;
  int group_;
  ring_cursor at_;
};

}  // namespace untax::gpu
