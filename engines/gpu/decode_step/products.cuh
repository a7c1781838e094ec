#pragma once

#include <cstdint>

#include "engines/gpu/decode_step/block.cuh"
#include "engines/gpu/matrix/pairs.cuh"
#include "engines/gpu/sm90/mma/warp.cuh"

namespace untax::gpu {

/// Positions in the three rings of a block, for a warp that multiplies.
struct step_cursors {
  step_cursor stage;
  step_cursor rows;
  step_cursor vectors;
};

/// Four adjacent columns of a token in a product, summed in fp32.
struct alignas(16) step_quad {
  float v[4];

  [[nodiscard]] static __device__ step_quad of(const float4& f) { return {{f.x, f.y, f.z, f.w}}; }

  [[nodiscard]] static __device__ step_quad of(const uint2& bits) {
    const float2 low = two_floats(bits.x, step_value{});
    const float2 high = two_floats(bits.y, step_value{});
    return {{low.x, low.y, high.x, high.y}};
  }
  [[nodiscard]] __device__ uint2 bits() const {
    return make_uint2(two_halves(v[0], v[1], step_value{}), two_halves(v[2], v[3], step_value{}));
  }
  __device__ void add(const step_quad& more) {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] += more.v[i];
  }
  __device__ void scale(float factor) {
#pragma unroll
    for (float& value : v) value *= factor;
  }
};

/// Four columns of a vector.
[[nodiscard]] __device__ step_quad quad_of(const void* vector, int column) {
  return step_quad::of(
      *reinterpret_cast<const uint2*>(static_cast<const step_value*>(vector) + column));
}

/// The product of a block's units with all tokens, for the warps that multiply. Each has a slice of
/// every chunk of columns; its sums stay in registers, and those of all warps are added in shared
/// memory, in the order of warps. So the bits of a token depend on nothing but the number of
/// blocks.
class unit_products {
 public:
  unit_products(const unit_products&) = delete;
  __device__ explicit unit_products(const step_block& block)
      : block_(block),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  /// Calls `use(has, unit, token, half, quad, next)` for each unit of this block, token and half of
  /// the unit's eight columns, in one thread. All lanes of a warp call it together, those without
  /// such a quad with false. Where gate and up alternate, it is called for units of the gate, with
  /// the sums of up as `next`. Returns the positions in the rings behind.
  template <class Use>
  [[nodiscard]] __device__ step_cursors run(step_product which, step_cursors at, const Use& use) {
    const step_shape& s = block_.shape();
    const int count = block_.share(which).count;
    const int depth = s.depth(which);
    const int each = which == step_product::gate_up ? 2 : 1;
    for (int begin = 0; begin < count; begin += step_shape::most_units) {
      const int units = min(step_shape::most_units, count - begin);
      at = multiply(depth, units, at);
      add_warps(begin, units, each, use);
    }
    return at;
  }

 private:
  static constexpr int most = step_shape::most_units;

  [[nodiscard]] __device__ step_cursors multiply(int depth, int units, step_cursors at) {
    const step_shape& s = block_.shape();
    step_numbers& n = block_.numbers();
#pragma unroll
    for (auto& unit : sums_) {
#pragma unroll
      for (float& v : unit) v = 0;
    }
    // Where the lane's rows of matrices of eight by eight elements begin: of tokens, where rows
    // that do not exist are the last one, and of a warp's panel of a unit.
    const int token = min(lane_ % 16, s.tokens - 1) * step_shape::row_pitch +
                      warp_ * step_shape::panel_bytes + lane_ / 16 * 16;
    const int row = warp_ * step_shape::unit_rows * step_shape::panel_bytes +
                    lane_ % 8 * step_shape::panel_bytes;
    const std::uint32_t low = shared_address(block_.shared) + static_cast<std::uint32_t>(row) +
                              static_cast<std::uint32_t>((lane_ / 8 ^ lane_ % 8) * 16);
    for (int column = 0; column < depth; column += step_shape::chunk) {
      n.rows_full[at.rows.stage].wait(at.rows.parity);
      std::uint32_t x[4][4];
#pragma unroll
      for (int k = 0; k < 4; ++k)
        load_matrices(x[k], shared_address(block_.rows(at.rows.stage) + token + k * 32));
      __syncwarp();
      if (lane_ == 0) n.rows_empty[at.rows.stage].arrive();
      at.rows.advance(s.activation_stages);
#pragma unroll
      for (int u = 0; u < most; ++u) {
        if (u >= units) break;
        n.full[at.stage.stage].wait(at.stage.parity);
        const std::uint32_t from =
            low + static_cast<std::uint32_t>(at.stage.stage * step_shape::stage_bytes);
        std::uint32_t w[2][4];
        load_matrices(w[0], from);
        load_matrices(w[1], from ^ 64U);
#pragma unroll
        for (int k = 0; k < 4; ++k)
          multiply_by_warp<bf16>(sums_[u], x[k], w[k / 2][k % 2 * 2], w[k / 2][k % 2 * 2 + 1]);
        __syncwarp();
        if (lane_ == 0) n.empty[at.stage.stage].arrive();
        at.stage.advance(s.ring_stages);
      }
    }
    return at;
  }

  /// Adds the sums of all warps, of as many units at a time as there is memory for.
  template <class Use>
  __device__ void add_warps(int begin, int units, int each, const Use& use) {
    const int tokens = block_.shape().tokens;
    const int bits = block_.shape().token_bits;
    constexpr int floats = step_shape::sum_bytes / 4 / step_shape::warps / step_shape::unit_rows;
    const int together = floats >> bits & ~1;
#pragma unroll 1
    for (int first = 0; first < units; first += together) {
      const int now = min(together, units - first);
      const int of_warp = (now << bits) * step_shape::unit_rows;
      if (begin + first > 0) meet_multipliers();
      float* const own = block_.sums() + warp_ * of_warp + lane_ % 4 * 2;
#pragma unroll
      for (int u = 0; u < most; ++u) {
        if (u < first || u >= first + now) continue;
        float* const to = own + (((u - first) << bits) + lane_ / 4) * step_shape::unit_rows;
        if (lane_ / 4 < tokens)
          *reinterpret_cast<float2*>(to) = make_float2(sums_[u][0], sums_[u][1]);
        if (lane_ / 4 + 8 < tokens)
          *reinterpret_cast<float2*>(to + 8 * step_shape::unit_rows) =
              make_float2(sums_[u][2], sums_[u][3]);
      }
      meet_multipliers();
      const int quads = (each == 2 ? now / 2 : now) << (bits + 1);
#pragma unroll 1
      for (int warp_begin = warp_ * 32; warp_begin < quads; warp_begin += step_multipliers) {
        const int i = warp_begin + lane_;
        const int token = i >> 1 & ((1 << bits) - 1);
        const int unit = (i >> (bits + 1)) * each;
        const bool has = i < quads && token < tokens;
        const int place = has ? ((unit << bits) + token) * step_shape::unit_rows + i % 2 * 4 : 0;
        const step_quad sum = sum_of_warps(place, of_warp);
        step_quad next{};
        if (each == 2) next = sum_of_warps(place + (step_shape::unit_rows << bits), of_warp);
        use(has, begin + first + unit, token, i % 2, sum, next);
      }
    }
  }
  [[nodiscard]] __device__ step_quad sum_of_warps(int place, int of_warp) const {
    step_quad sum{};
#pragma unroll
    for (int w = 0; w < step_shape::warps; ++w) {
      sum.add(step_quad::of(*reinterpret_cast<const float4*>(block_.sums() + w * of_warp + place)));
    }
    return sum;
  }

  const step_block& block_;
  int warp_;
  int lane_;
  float sums_[most][4];
};

}  // namespace untax::gpu
