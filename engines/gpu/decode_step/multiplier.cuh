#pragma once

#include <cstdint>

#include "engines/gpu/decode_step/attention.cuh"
#include "engines/gpu/decode_step/block.cuh"
#include "engines/gpu/decode_step/products.cuh"
#include "engines/gpu/matrix/activation_function.cuh"
#include "engines/gpu/words/partial_words.cuh"
#include "engines/gpu/words/slab_words.cuh"

namespace untax::gpu {

/// Adds the squares of a block's part of the residual stream, a warp for each token, in the same
/// order in each run. Not inlined, since it is called twice.
__device__ __noinline__ void add_squares(const uint2* residual, int units, int tokens,
                                         float* squares, int blocks) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int t = static_cast<int>(threadIdx.x) / 32; t < tokens; t += step_shape::warps) {
    float sum = 0;
    for (int i = lane; i < units * 2; i += 32) {
      const step_quad x = step_quad::of(residual[(i / 2 * tokens + t) * 2 + i % 2]);
#pragma unroll
      for (const float v : x.v) sum += v * v;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
    if (lane == 0) squares[t * blocks + static_cast<int>(blockIdx.x)] = sum;
  }
}

/// The function of a gate. Those that are not inlined are rare.
[[nodiscard]] __device__ __noinline__ inline float other_function_of(activation_function function,
                                                                     float x) {
  return function_of(function, x);
}
[[nodiscard]] __device__ inline float gate_of(activation_function function, float x) {
  if (function == activation_function::swiglu) return __fdividef(x, 1.0F + __expf(-x));
  return other_function_of(function, x);
}

/// The warps of a block that multiply: they carry the layers out, each for the block's columns. The
/// residual stream of these columns stays in shared memory from the first layer to the last.
template <int head_dim>
class step_multiplier {
 public:
  /// `before`: arrivals of earlier steps.
  __device__ step_multiplier(const step_block& block, std::uint64_t before, int slot)
      : block_(block),
        products_(block),
        expected_(before),
        slot_(slot),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        hidden_(block.share(step_product::output)) {}

  __device__ void run() {
    begin();
    step_cursors at;
    for (int l = 0; l < block_.shape().layers; ++l) {
      const step_layer& layer = block_.a.layers[l];
      const std::uint32_t biases = layer.biases;
      const step_cache cache{static_cast<step_value*>(layer.keys),
                             static_cast<step_value*>(layer.values), layer.windowed};
      // One loop, so that there is one copy of the code.
#pragma unroll 1
      for (int product = 0; product < 4; ++product) {
        const auto which = static_cast<step_product>(product);
        if (which == step_product::output) {
          at = step_attention<head_dim>(block_, cache, slot_).run(at, [&] {
            await_others();
            meet_multipliers();
          });
          arrive();
        }
        multiply(biases, which, at);
      }
    }
    finish();
  }

 private:
  using words = partial_words<step_value, true>;
  static constexpr int unit_rows = step_shape::unit_rows;
  static constexpr int patience = 4096;  ///< polls before the wait is watched

  /// `biases`: a bit for each product that has one.
  __device__ void multiply(std::uint32_t biases, step_product which, step_cursors& at) {
    const step_shape::units own = block_.share(which);
    await_others();
    const bool adds = which == step_product::output || which == step_product::down;
    const std::byte* const vectors = block_.vectors(at.vectors.stage);
    stage_barrier& arrived = block_.numbers().vectors_full[at.vectors.stage];
    const std::uint32_t parity = at.vectors.parity;
    const bool has_bias = (biases >> static_cast<int>(which) & 1U) != 0;
    at = products_.run(
        which, at,
        [&](bool has, int unit, int token, int half, const step_quad& sum, const step_quad& up) {
          arrived.wait(parity);
          const std::byte* const bias = has_bias ? vectors + unit * 16 + half * 8 : nullptr;
          if (adds) {
            add(bias, vectors + block_.shape().norm_at() + unit * 16 + half * 8, has, unit, token,
                half, sum);
          } else if (has) {
            store(which, bias, own.first + unit, token, half, sum, up);
          }
        });
    arrived.wait(parity);
    __syncwarp();
    if (lane_ == 0) block_.numbers().vectors_empty[at.vectors.stage].arrive();
    at.vectors.advance(step_shape::vector_stages);
    if (adds) {
      ++exchanges_;
      publish_squares();
    } else {
      arrive();
    }
  }

  /// Ends a part of the step: the other blocks may read what this one has written.
  __device__ void arrive() {
    meet_multipliers();
    expected_ += static_cast<std::uint64_t>(block_.shape().blocks);
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.u64 [%0], 1;"
                   :
                   : "l"(__cvta_generic_to_global(block_.a.arrived))
                   : "memory");
    }
  }
  /// Waits until all blocks have arrived as often as this one, so also a block without a part in
  /// what follows. The first warp waits; the others meet it later, or wait for the rows that
  /// follow. After a failed wait, which the host reports, the block goes on with what it finds.
  __device__ void await_others() {
    if (warp_ != 0 || !going_) return;
    grid_arrivals mine(block_.a.arrived, expected_);
    for (int polls = 0; polls < patience; ++polls) {
      if (mine.look() != 0) return;
    }
    going_ = wait_for_blocks(block_.a.run, mine, slot_);
    if (!going_ && lane_ == 0) *static_cast<volatile std::int32_t*>(&block_.numbers().failed) = 1;
  }

  [[nodiscard]] __device__ int quads() const { return hidden_.count * block_.shape().tokens * 2; }
  [[nodiscard]] __device__ int quad_at(int unit, int token, int half) const {
    return (unit * block_.shape().tokens + token) * 2 + half;
  }
  /// The first column of a quad of the residual stream, and where it is in a matrix of its size.
  [[nodiscard]] __device__ int column_of(int unit, int half) const {
    return (hidden_.first + unit) * unit_rows + half * 4;
  }
  [[nodiscard]] __device__ uint2* in_rows(const void* rows, int token, int width,
                                          int column) const {
    return reinterpret_cast<uint2*>(static_cast<step_value*>(const_cast<void*>(rows)) +
                                    std::int64_t{token} * width + column);
  }

  /// Calls `visit(i, unit, token, half)` for the quads of the residual stream, each in a thread.
  template <class Visit>
  __device__ void each_quad(const Visit& visit) const {
    const int tokens = block_.shape().tokens;
    for (int i = static_cast<int>(threadIdx.x); i < quads(); i += step_multipliers)
      visit(i, i / (2 * tokens), i / 2 % tokens, i % 2);
  }

  __device__ void begin() {
    const step_arguments& a = block_.a;
    each_quad([&](int i, int unit, int token, int half) {
      const uint2 bits = *in_rows(a.x, token, a.shape.hidden, column_of(unit, half));
      const int column = column_of(unit, half);
      keep(i, token, column, bits, static_cast<const step_value*>(a.layers[0].input_norm) + column);
    });
    publish_squares();
  }

  /// Keeps four elements of the residual stream, and stores them for the products that follow,
  /// which divide their results by the root mean square. `norm`: four weights.
  __device__ void keep(int i, int token, int column, const uint2& bits, const void* norm) {
    block_.residual()[i] = bits;
    step_quad scaled = step_quad::of(bits);
    const step_quad weight = quad_of(norm, 0);
#pragma unroll
    for (int k = 0; k < 4; ++k) scaled.v[k] *= weight.v[k];
    *in_rows(block_.a.scaled, token, block_.shape().hidden, column) = scaled.bits();
  }
  __device__ void publish_squares() {
    meet_multipliers();
    add_squares(block_.residual(), hidden_.count, block_.shape().tokens, block_.a.squares,
                block_.shape().blocks);
    arrive();
  }

  /// Four columns of qkv, or of what the function of gate and up leaves. `bias`: of the columns, or
  /// null.
  __device__ void store(step_product which, const std::byte* bias, int unit, int token, int half,
                        step_quad sum, step_quad up) {
    const step_arguments& a = block_.a;
    const float inverse = block_.numbers().inverse[token];
    sum.scale(inverse);
    if (bias != nullptr) sum.add(quad_of(bias, 0));
    if (which == step_product::qkv) {
      *in_rows(a.projected, token, a.shape.qkv_columns(), unit * unit_rows + half * 4) = sum.bits();
      return;
    }
    up.scale(inverse);
    if (bias != nullptr) up.add(quad_of(bias, unit_rows));
#pragma unroll
    for (int k = 0; k < 4; ++k) sum.v[k] = gate_of(a.function, sum.v[k]) * up.v[k];
    *in_rows(a.activated, token, a.shape.intermediate, unit / 2 * unit_rows + half * 4) =
        sum.bits();
  }

  /// Adds four columns of a product, summed over ranks, to the residual stream. `norm`: the weights
  /// of the norm that follows.
  __device__ void add(const std::byte* bias, const std::byte* norm, bool has, int unit, int token,
                      int half, step_quad sum) {
    const int column = column_of(unit, half);
    if (bias != nullptr) sum.add(quad_of(bias, 0));
    if (block_.a.run.world.ranks > 1) add_ranks(has, token, column, sum);
    if (!has) return;
    const int i = quad_at(unit, token, half);
    sum.add(step_quad::of(block_.residual()[i]));
    keep(i, token, column, sum.bits(), norm);
  }

  /// Sends four elements of this rank's sum to all peers, and adds theirs, in the order of ranks.
  /// The words are their own signal (words/slab_words.cuh); their two sets take turns. A rank that
  /// has received a peer's words of an exchange knows that the peer has reset those of the one
  /// before, whose set it writes next.
  __device__ void add_ranks(bool has, int token, int column, step_quad& sum) {
    const run_arguments& run = block_.a.run;
    const int ranks = run.world.ranks;
    const int own = run.world.rank;
    const int width = block_.shape().hidden / 4;
    const std::int64_t slab = std::int64_t{block_.a.most_tokens} * width;
    const std::int64_t place = std::int64_t{token} * width + column / 4;
    const std::int64_t set = std::int64_t{exchanges_ & 1} * ranks;
    const uint2 mine = words::of(sum.v);
    for (int hop = 1; hop < ranks && has; ++hop) {
      const int peer = own + hop < ranks ? own + hop : own + hop - ranks;
      store_sum_words(reinterpret_cast<uint2*>(run.inbox.at(peer)) + (set + own) * slab + place,
                      mine);
    }
    constexpr int together = 4;
    slab_place<words> from;
    from.base = reinterpret_cast<uint2*>(run.inbox.at(own)) + set * slab + place;
    from.stride = slab;
    from.skipped = own;
    from.epoch = static_cast<std::uint64_t>(exchanges_);
    from.room = static_cast<int>(set);
    const auto plus = [&](const uint2& bits, int rank) {
      const float4 more = words::sums_of(bits);
      const step_quad quad{{more.x, more.y, more.z, more.w}};
      if (rank == 0) {
        sum = quad;
      } else {
        sum.add(quad);
      }
    };
    for (from.begin = 0; from.begin < ranks - 1; from.begin += together) {
      from.count = has ? min(ranks - 1 - from.begin, together) : 0;
      slab_words<words, together> arrived(from);
      going_ = going_ && arrived.await(run, slot_);
      if (going_ && !left_out(mutant::sums_reset)) arrived.reset_words();
#pragma unroll
      for (int k = 0; k < together; ++k) {
        if (k >= from.count) break;
        if (from.begin + k == own) plus(mine, own);
        plus(arrived.found[k][0], from.rank_of(k));
      }
    }
    if (own == ranks - 1) plus(mine, own);
  }

  /// The normalised rows for the head of the model.
  __device__ void finish() {
    const step_arguments& a = block_.a;
    await_others();
    meet_multipliers();
    for (int t = warp_; t < a.shape.tokens; t += step_shape::warps) {
      const float inverse = inverse_of(a, t, lane_);
      if (lane_ == 0) block_.numbers().inverse[t] = inverse;
    }
    meet_multipliers();
    each_quad([&](int i, int unit, int token, int half) {
      const int column = column_of(unit, half);
      step_quad x = step_quad::of(block_.residual()[i]);
      x.scale(block_.numbers().inverse[token]);
      const step_quad weight = quad_of(a.final_norm, column);
#pragma unroll
      for (int k = 0; k < 4; ++k) x.v[k] *= weight.v[k];
      *in_rows(a.normed, token, a.shape.hidden, column) = x.bits();
    });
  }

  const step_block& block_;
  unit_products products_;
  std::uint64_t expected_;  ///< arrivals, with those of this block
  int slot_;
  int warp_;
  int lane_;
  step_shape::units hidden_;
  int exchanges_ = 0;
  bool going_ = true;
};

}  // namespace untax::gpu
