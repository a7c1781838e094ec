#pragma once

#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/decode_step/block.cuh"
#include "engines/gpu/decode_step/keys.cuh"
#include "engines/gpu/sm90/ptx/async_copy.cuh"

namespace untax::gpu {

/// The warp that streams all weights of the model, and the cached keys and values, through a ring
/// of stages. Nothing in a step writes them, so it never waits for another block: while the block
/// waits for the grid or for peers, the ring fills.
class constant_loader {
 public:
  explicit __device__ constant_loader(const step_block& block)
      : block_(block), lane_(lane_of_warp()) {}

  __device__ void run() {
    const int layers = block_.shape().layers;
#pragma unroll 1
    for (int l = 0; l < layers; ++l) {
      const step_layer& layer = block_.a.layers[l];
      const void* const next = l + 1 < layers ? (&layer)[1].input_norm : block_.a.final_norm;
#pragma unroll 1
      for (int product = 0; product < 4; ++product) {
        if (product == 1) load_keys(layer);
        const auto which = static_cast<step_product>(product);
        const step_shape::units own = block_.share(which);
        const void* const norm = product == 1 ? layer.mlp_norm : product == 3 ? next : nullptr;
        load_vectors(layer.bias[product], norm, own.first * step_shape::unit_rows * 2,
                     own.count * step_shape::unit_rows * 2, block_.shape().norm_at());
        load(layer.weights[product], own, block_.shape().depth(which));
      }
    }
  }

 private:
  /// Loads a stage, for which the lanes with `takes` load a box of panels to `offset` each.
  __device__ void load(const CUtensorMap& panels, int row, int panel, bool takes, int offset,
                       int bytes) {
    step_numbers& n = block_.numbers();
    stage_barrier& arrived = n.full[at_.stage];
    n.empty[at_.stage].wait(at_.parity ^ 1U);
    if (lane_ == 0) arrived.arrive_and_expect(static_cast<std::uint32_t>(bytes));
    __syncwarp();
    if (takes) panel_load(block_.stage(at_.stage) + offset, panels, row, panel, arrived);
    at_.advance(block_.shape().ring_stages);
  }
  __device__ void load(const CUtensorMap& weights, const step_shape::units& own, int depth) {
    for (int begin = 0; begin < own.count; begin += step_shape::most_units) {
      const int units = min(step_shape::most_units, own.count - begin);
      const int first = (own.first + begin) * step_shape::unit_rows;
      for (int column = 0; column < depth; column += step_shape::chunk) {
#pragma unroll 1
        for (int u = 0; u < units; ++u)
          load(weights, first + u * step_shape::unit_rows, column / step_shape::slice, lane_ == 0,
               0, step_shape::stage_bytes);
      }
    }
  }

  /// Loads `bytes` of two vectors, of which any may be null.
  __device__ void load_vectors(const void* first, const void* second, int begin, int bytes,
                               int second_at) {
    step_numbers& n = block_.numbers();
    n.vectors_empty[vectors_at_.stage].wait(vectors_at_.parity ^ 1U);
    if (lane_ == 0) {
      stage_barrier& arrived = n.vectors_full[vectors_at_.stage];
      std::byte* const to = block_.vectors(vectors_at_.stage);
      const int count = (first != nullptr ? 1 : 0) + (second != nullptr ? 1 : 0);
      arrived.arrive_and_expect(static_cast<std::uint32_t>(count * bytes));
      const auto load = [&](const void* from, int place) {
        if (from != nullptr && bytes > 0)
          bulk_load(to + place, static_cast<const std::byte*>(from) + begin,
                    static_cast<std::uint32_t>(bytes), arrived);
      };
      load(first, 0);
      load(second, second_at);
    }
    __syncwarp();
    vectors_at_.advance(step_shape::vector_stages);
  }

  /// The token's own key is not there yet: those that multiply put it into its place.
  __device__ void load_keys(const step_layer& layer) {
    const step_shape& shape = block_.shape();
    const int bytes = shape.head_dim * 2;
    load_vectors(layer.q_norm, layer.k_norm, 0, bytes, bytes);
    const key_list list(block_, layer.windowed);
#pragma unroll 1
    for (int i = 0; i < list.count; ++i) {
      const key_item& item = list.items[i];
      const int end = item.span + item.spans;
      int row = row_of(item, item.span);
#pragma unroll 1
      for (int s = item.span; s < end; ++s) {
        const int now = row;
        if (s + 1 < end) row = row_of(item, s + 1);
#pragma unroll 1
        for (int which = 0; which < 2; ++which)
          load(layer.cached[which], now, item.head * shape.head_dim / step_shape::slice,
               lane_ << shape.box_bits < step_shape::stage_keys, (lane_ * bytes) << shape.box_bits,
               step_shape::stage_keys * bytes);
      }
    }
  }
  /// The row of the cache where the lane's box of a span begins.
  [[nodiscard]] __device__ int row_of(const key_item& item, int span) const {
    const step_arguments& a = block_.a;
    const int key =
        min(span * step_shape::stage_keys + (lane_ << a.shape.box_bits), item.length - 1);
    const int page = a.page_table[std::int64_t{item.token} * a.sequence_pages + key / a.page_size];
    return page * a.page_size + (key % a.page_size >> a.shape.box_bits << a.shape.box_bits);
  }

  const step_block& block_;
  int lane_;
  step_cursor at_;
  step_cursor vectors_at_;
};

/// The warps that load the rows which products take, each time that all blocks have written them.
/// Of the residual stream they also find the root mean squares. TMA would load them behind the
/// weights that it has been asked for.
class row_loader {
 public:
  /// `before`: arrivals of earlier steps.
  __device__ row_loader(const step_block& block, std::uint64_t before, int warp)
      : block_(block), before_(before), warp_(warp), lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ void run() {
    const step_arguments& a = block_.a;
    for (int l = 0; l < block_.shape().layers; ++l) {
      const int ended = 1 + l * step_shape::arrivals_of_layer;
#pragma unroll 1
      for (int product = 0; product < 4; ++product) {
        const void* const from = product == 1 ? a.attended : product == 3 ? a.activated : a.scaled;
        load(from, static_cast<step_product>(product), ended + product + (product > 0 ? 1 : 0),
             product % 2 == 0);
      }
    }
  }

 private:
  __device__ void load(const void* from, step_product which, int ended, bool normalises) {
    const step_shape& s = block_.shape();
    const int depth = s.depth(which);
    const int units = block_.share(which).count;
    await_grid(static_cast<std::uint64_t>(ended) * static_cast<std::uint64_t>(s.blocks));
    const int chunks = (depth + step_shape::chunk - 1) / step_shape::chunk;
    const int last_early = min(chunks, s.activation_stages) - 1;
    constexpr int words = step_shape::chunk * 2 / 16;  // of a row
    for (int begin = 0; begin < units; begin += step_shape::most_units) {
      for (int c = 0; c < chunks; ++c) {
        const int column = c * step_shape::chunk;
        const int columns = min(step_shape::chunk, depth - column);
        step_numbers& n = block_.numbers();
        n.rows_empty[at_.stage].wait(at_.parity ^ 1U);
        if (normalises && begin == 0 && c == last_early) find_inverses();
        const std::uint32_t to = shared_address(block_.rows(at_.stage));
        const auto* const first = static_cast<const std::byte*>(from) + column * 2;
#pragma unroll 4
        for (int i = warp_ * 32 + lane_; i < s.tokens * words; i += row_warps * 32) {
          const int token = i / words;
          const int word = i % words * 16;
          copy_16_bytes(to + static_cast<std::uint32_t>(token * step_shape::row_pitch + word),
                        first + std::int64_t{token} * depth * 2 + word, word < columns * 2);
        }
        arrive_behind_copies(n.rows_full[at_.stage]);
        __syncwarp();
        if (lane_ == 0) n.rows_full[at_.stage].arrive();
        at_.advance(s.activation_stages);
      }
    }
  }

  /// Waits for what the warps that multiply wait for, too. They bound that wait: after a failed one
  /// this warp goes on with what it finds, so that no role of the block is left waiting.
  __device__ void await_grid(std::uint64_t count) const {
    if (left_out(mutant::step_arrivals)) return;
    grid_arrivals mine(block_.a.arrived, before_ + count);
    while (mine.look() == 0) {
      if (*static_cast<volatile std::int32_t*>(&block_.numbers().failed) != 0) return;
    }
  }

  /// To be called before lane 0 arrives at the barrier of rows, by which others see the results.
  __device__ void find_inverses() {
#pragma unroll 2
    for (int t = warp_; t < block_.shape().tokens; t += row_warps) {
      const float inverse = inverse_of(block_.a, t, lane_);
      if (lane_ == 0) block_.numbers().inverse[t] = inverse;
    }
  }

  const step_block& block_;
  std::uint64_t before_;
  int warp_;
  int lane_;
  step_cursor at_;
};

}  // namespace untax::gpu
