#pragma once

#include <cmath>
#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/decode_step/block.cuh"
#include "engines/gpu/decode_step/keys.cuh"
#include "engines/gpu/decode_step/products.cuh"
#include "engines/gpu/matrix/pairs.cuh"
#include "engines/gpu/sm90/mma/warp.cuh"
#include "engines/gpu/sm90/ptx/floats.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// The cached keys and values of a layer.
struct step_cache {
  step_value* keys;
  step_value* values;
  int windowed;
};

/// Attention of a token of each sequence to its cached keys and to its own, for the warps that
/// multiply: bias is added already; it applies norms of heads and rotations, appends the tokens'
/// keys and values to the cache, and leaves the results in `attended`.
///
/// A warp takes a span of 32 keys at a time, with all heads of queries that read them. The warps'
/// results are merged in shared memory, those of blocks by the block that ends last, in the order
/// of keys.
template <int head_dim>
class step_attention {
 public:
  /// `slot`: the warp's wait record.
  __device__ step_attention(const step_block& block, const step_cache& cache, int slot)
      : block_(block),
        cache_(cache),
        slot_(slot),
        group_(block.shape().group()),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(lane_of_warp()) {}

  /// `await` waits for what all blocks have projected, and is called once. Returns the positions in
  /// the rings behind.
  template <class Await>
  [[nodiscard]] __device__ step_cursors run(step_cursors at, const Await& await) {
    const key_list list(block_, cache_.windowed);
    int spans = 0;  // of this block so far
    if (list.count > 0) find_rotation(list.items[0]);
    await();
    block_.numbers().vectors_full[at.vectors.stage].wait(at.vectors.parity);
#pragma unroll 1
    for (int i = 0; i < list.count; ++i) {
      const key_item& item = list.items[i];
      if (i > 0) {
        find_rotation(item);
        meet_multipliers();  // the last item's queries and sums were read
      }
      prepare(item, block_.vectors(at.vectors.stage));
      meet_multipliers();
      at.stage = attend(item, spans, at.stage);
      spans += item.spans;
      merge_warps(item);
    }
    // Not before all parts of this block are there: others wait for them.
#pragma unroll 1
    for (int i = 0; i < list.count; ++i) {
      if (list.items[i].parts > 1) merge_parts(list.items[i]);
    }
    __syncwarp();
    if (lane_ == 0) block_.numbers().vectors_empty[at.vectors.stage].arrive();
    at.vectors.advance(step_shape::vector_stages);
    return at;
  }

 private:
  static constexpr int tiles = head_dim / 8;
  static constexpr int panels = head_dim / step_shape::slice;
  static constexpr int of_lane = head_dim / 32;
  static constexpr int warps = step_shape::warps;
  static constexpr unsigned everybody = 0xffffffffU;
  static constexpr int pitch = head_dim * 2 + 16;
  static constexpr int keys = step_shape::stage_keys;
  static constexpr int patience = 4096;  ///< polls before a wait is watched

  /// Where a row of a panel is in a stage of keys or values, whose boxes follow each other.
  [[nodiscard]] __device__ int row_at(int key) const {
    const int bits = block_.shape().box_bits;
    return (((key >> bits) * panels << bits) + (key & ((1 << bits) - 1))) * step_shape::panel_bytes;
  }
  /// Where eight elements of that row are, of which there are eight in a panel.
  [[nodiscard]] __device__ int word_at(int row, int word) const {
    return row + (word / 8 * step_shape::panel_bytes << block_.shape().box_bits) +
           ((word % 8 ^ row / step_shape::panel_bytes % 8) * 16);
  }
  [[nodiscard]] __device__ step_value* query(int head) const {
    return reinterpret_cast<step_value*>(block_.queries() + head * pitch);
  }
  [[nodiscard]] __device__ step_value* own_key() const { return query(step_shape::most_group); }
  [[nodiscard]] __device__ step_value* own_value() const {
    return query(step_shape::most_group + 1);
  }

  /// Loads the rotation of the token, which need not wait.
  __device__ void find_rotation(const key_item& item) {
    const step_arguments& a = block_.a;
    const int half = a.rotated / 2;
    const int away = half / of_lane;
    const int first = (lane_ < away ? lane_ : lane_ < 2 * away ? lane_ - away : 0) * of_lane;
    const float* const angles = a.rotations + std::int64_t{item.length - 1} * a.rotated + first;
#pragma unroll
    for (int e = 0; e < of_lane; ++e) {
      cosines_[e] = angles[e];
      sines_[e] = angles[half + e];
    }
  }

  /// The heads of an item, a warp each: queries, then the token's own key and value.
  __device__ void prepare(const key_item& item, const std::byte* norms) {
    const step_shape& s = block_.shape();
    const int heads = group_ + (item.has_own_key() ? 2 : 0);
#pragma unroll 1
    for (int i = warp_; i < heads; i += warps) {
      const int column = i < group_ ? item.head * group_ + i
                                    : s.heads + (i == group_ ? 0 : s.kv_heads) + item.head;
      const step_value* const from = static_cast<const step_value*>(block_.a.projected) +
                                     item.token * s.qkv_columns() + column * head_dim +
                                     lane_ * of_lane;
      float v[of_lane];
#pragma unroll
      for (int e = 0; e < of_lane / 2; ++e) {
        const float2 two =
            two_floats(__ldcg(reinterpret_cast<const unsigned*>(from) + e), step_value{});
        v[2 * e] = two.x;
        v[2 * e + 1] = two.y;
      }
      if (i <= group_)
        turn(v, reinterpret_cast<const step_value*>(norms) + (i < group_ ? 0 : head_dim));
      step_value* const to =
          query(i < group_ ? i : step_shape::most_group + i - group_) + lane_ * of_lane;
      step_value* const cached = (i == group_ ? cache_.keys : cache_.values) +
                                 (item.own * s.kv_heads + item.head) * head_dim + lane_ * of_lane;
#pragma unroll
      for (int e = 0; e < of_lane / 2; ++e) {
        const unsigned two = two_halves(v[2 * e], v[2 * e + 1], step_value{});
        reinterpret_cast<unsigned*>(to)[e] = two;
        if (i >= group_) reinterpret_cast<unsigned*>(cached)[e] = two;
      }
    }
  }
  /// Norm and rotation of a head.
  __device__ void turn(float (&v)[of_lane], const step_value* norm) const {
    if (block_.a.has_head_norms) {
      float squares = 0;
#pragma unroll
      for (const float value : v) squares += value * value;
#pragma unroll
      for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(everybody, squares, step);
      const float inverse = rsqrtf(squares / static_cast<float>(head_dim) + block_.a.epsilon);
#pragma unroll
      for (int e = 0; e < of_lane; ++e)
        v[e] *= inverse * static_cast<float>(norm[lane_ * of_lane + e]);
    }
    const int away = block_.a.rotated / 2 / of_lane;
    const bool turns = lane_ < 2 * away;
    const bool is_low = lane_ < away;
    const int other = turns ? (is_low ? lane_ + away : lane_ - away) : lane_;
#pragma unroll
    for (int e = 0; e < of_lane; ++e) {
      const float partner = __shfl_sync(everybody, v[e], other);
      if (turns) v[e] = v[e] * cosines_[e] + (is_low ? -partner : partner) * sines_[e];
    }
  }

  /// The spans of this block, every eighth of which is this warp's. `before`: those of earlier
  /// items.
  [[nodiscard]] __device__ step_cursor attend(const key_item& item, int before, step_cursor at) {
#pragma unroll
    for (auto& tile : out_) {
#pragma unroll
      for (float& v : tile) v = 0;
    }
    most_[0] = most_[1] = -INFINITY;
    weight_[0] = weight_[1] = 0;
    step_numbers& n = block_.numbers();
    const int ring = block_.shape().ring_stages;
    const int spans = item.spans;
    const int first = (warp_ - before % warps + warps) % warps;
    step_cursor of_keys = at;
    of_keys.advance_by(2 * first, ring);
#pragma unroll 1
    for (int s = first; s < spans; s += warps) {
      step_cursor of_values = of_keys;
      of_values.advance(ring);
      n.full[of_keys.stage].wait(of_keys.parity);
      n.full[of_values.stage].wait(of_values.parity);
      take((item.span + s) * keys, item.first, item.length, block_.stage(of_keys.stage),
           block_.stage(of_values.stage), n.empty[of_keys.stage]);
      __syncwarp();
      if (lane_ < warps) n.empty[of_values.stage].arrive();
      of_keys.advance_by(2 * warps, ring);
    }
    at.advance_by(2 * spans, ring);
    return at;
  }

  /// A span whose first key is `begin`, of which the token sees those in [first, length). Its stage
  /// of keys is free when they are multiplied.
  __device__ void take(int begin, int first, int length, std::byte* of_keys, std::byte* of_values,
                       stage_barrier& keys_are_read) {
    if (length - 1 - begin < keys) add_own(length - 1 - begin, of_keys, of_values);
    const int matrix = lane_ / 8;
    const int row = lane_ % 8;
    float s[keys / 8][4] = {};
    const std::uint32_t q = shared_address(query(matrix % 2 * 8 + row) + matrix / 2 * 8);
    const int low = row_at(matrix / 2 * 8 + row);
    const int high = row_at(16 + matrix / 2 * 8 + row);
    const std::uint32_t key_stage = shared_address(of_keys);
#pragma unroll 2
    for (int k = 0; k < head_dim / 16; ++k) {
      std::uint32_t a[4];
      std::uint32_t b[4];
      load_matrices(a, q + static_cast<std::uint32_t>(k * 32));
      load_matrices(b, key_stage + static_cast<std::uint32_t>(word_at(low, k * 2 + matrix % 2)));
      multiply_by_warp<bf16>(s[0], a, b[0], b[1]);
      multiply_by_warp<bf16>(s[1], a, b[2], b[3]);
      load_matrices(b, key_stage + static_cast<std::uint32_t>(word_at(high, k * 2 + matrix % 2)));
      multiply_by_warp<bf16>(s[2], a, b[0], b[1]);
      multiply_by_warp<bf16>(s[3], a, b[2], b[3]);
    }
    __syncwarp();
    if (lane_ < warps) keys_are_read.arrive();
    if (begin < first || begin + keys > length) hide(s, begin, first, length);
    const float scale = block_.a.scale * log2_of_e;
    std::uint32_t p[keys / 16][4];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float largest = -INFINITY;
#pragma unroll
      for (int i = 0; i < keys / 8; ++i)
        largest = fmaxf(largest, fmaxf(s[i][2 * j], s[i][2 * j + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(everybody, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(everybody, largest, 2));
      // Every span has a key that is seen.
      largest = fmaxf(most_[j], largest * scale);
      const float shrink = power_of_2(most_[j] - largest);
      most_[j] = largest;
      weight_[j] *= shrink;
#pragma unroll
      for (auto& tile : out_) {
        tile[2 * j] *= shrink;
        tile[2 * j + 1] *= shrink;
      }
#pragma unroll
      for (int i = 0; i < keys / 8; ++i) {
        const float a = power_of_2(s[i][2 * j] * scale - largest);
        const float b = power_of_2(s[i][2 * j + 1] * scale - largest);
        weight_[j] += a + b;
        p[i / 2][i % 2 * 2 + j] = two_halves(a, b, step_value{});
      }
    }
    const std::uint32_t value_stage = shared_address(of_values);
#pragma unroll
    for (int k = 0; k < keys / 16; ++k) {
      const int of_row = row_at(k * 16 + matrix % 2 * 8 + row);
#pragma unroll
      for (int d = 0; d < tiles / 2; ++d) {
        std::uint32_t b[4];
        load_transposed(
            b, value_stage + static_cast<std::uint32_t>(word_at(of_row, d * 2 + matrix / 2)));
        multiply_by_warp<bf16>(out_[2 * d], p[k], b[0], b[1]);
        multiply_by_warp<bf16>(out_[2 * d + 1], p[k], b[2], b[3]);
      }
    }
  }
  /// Takes out the logits of keys that the token does not see.
  __device__ void hide(float (&s)[keys / 8][4], int begin, int first, int length) const {
#pragma unroll
    for (int i = 0; i < keys / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int key = begin + i * 8 + lane_ % 4 * 2 + j % 2;
        if (key >= length || key < first) s[i][j] = -INFINITY;
      }
    }
  }
  /// Puts the token's own key and value into a span, and zeros behind: values there would be
  /// multiplied by zero, which NaN survives.
  __device__ void add_own(int own, std::byte* of_keys, std::byte* of_values) const {
    constexpr int words = head_dim / 8;
#pragma unroll 1
    for (int i = lane_; i < (keys - own) * words; i += 32) {
      const int row = i / words;
      const int place = word_at(row_at(own + row), i % words);
      uint4 key = make_uint4(0, 0, 0, 0);
      uint4 value = key;
      if (row == 0) {
        key = reinterpret_cast<const uint4*>(own_key())[i];
        value = reinterpret_cast<const uint4*>(own_value())[i];
      }
      *reinterpret_cast<uint4*>(of_keys + place) = key;
      *reinterpret_cast<uint4*>(of_values + place) = value;
    }
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);  // TMA writes the stage next
    __syncwarp();
  }

  /// Merges the results of the warps, as many columns at a time as there is memory for, and stores
  /// this block's part of the item, or what its only part leaves as its result.
  __device__ void merge_warps(const key_item& item) {
    float* const maxima = block_.sums();  // [warps, 16]
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      weight_[j] += __shfl_xor_sync(everybody, weight_[j], 1);
      weight_[j] += __shfl_xor_sync(everybody, weight_[j], 2);
      if (lane_ % 4 == 0) maxima[warp_ * 16 + j * 8 + lane_ / 4] = most_[j];
    }
    meet_multipliers();
    float factor[2];
    float* const common = maxima + warps * 16;  // [16]
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int head = j * 8 + lane_ / 4;
      float largest = most_[j];
#pragma unroll
      for (int w = 0; w < warps; ++w) largest = fmaxf(largest, maxima[w * 16 + head]);
      factor[j] = power_of_2(most_[j] - largest);
      if (threadIdx.x < 32 && lane_ % 4 == 0) common[head] = largest;
    }
    // A row of a head and, behind it, its weight.
    constexpr int room = (step_shape::sum_bytes / 4 - warps * 16 - 16) / warps;
    const int width = min(head_dim, (room / group_ - 4) & ~7);
    const int row = width + 4;
    float* const sums = common + 16;
#pragma unroll 1
    for (int begin = 0; begin < head_dim; begin += width) {
      const int end = min(begin + width, head_dim);
      if (begin > 0) meet_multipliers();
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int head = lane_ / 4 + j * 8;
        if (head >= group_) continue;
        float* const to = sums + (warp_ * group_ + head) * row + lane_ % 4 * 2 - begin;
        if (lane_ % 4 == 0) to[width + begin] = weight_[j] * factor[j];
#pragma unroll
        for (int d = 0; d < tiles; ++d) {
          if (d * 8 >= begin && d * 8 < end)
            *reinterpret_cast<float2*>(to + d * 8) =
                make_float2(out_[d][2 * j] * factor[j], out_[d][2 * j + 1] * factor[j]);
        }
      }
      meet_multipliers();
      // A thread has four columns of a head.
      const int quads = (end - begin) / 4;
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x); i < group_ * quads; i += step_multipliers) {
        const int head = i / quads;
        const int column = (i - head * quads) * 4;
        step_quad sum{};
        float weight = 0;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
          const float* const from = sums + (w * group_ + head) * row;
          sum.add(step_quad::of(*reinterpret_cast<const float4*>(from + column)));
          weight += from[width];
        }
        if (item.parts == 1) {
          store(item, head, begin + column, sum, __frcp_rn(weight));
          continue;
        }
        const float numbers[] = {common[head], weight, 1, 1};
        uint4* const to = part_at(item.part, (head * head_dim + begin + column) / 4);
        store_sum_words(to, part_arrival::words::of(sum.v));
        store_sum_words(to + 1, part_arrival::words::of(numbers));
      }
    }
  }
  __device__ void store(const key_item& item, int head, int column, step_quad sum,
                        float factor) const {
    const int row = item.token * block_.shape().heads + item.head * group_ + head;
    sum.scale(factor);
    *reinterpret_cast<uint2*>(static_cast<step_value*>(block_.a.attended) + row * head_dim +
                              column) = sum.bits();
  }

  /// The words of four columns of the item's heads in a part.
  [[nodiscard]] __device__ uint4* part_at(int place, int quad) const {
    return block_.a.parts + place * block_.shape().part_words() + quad * 2;
  }

  /// Merges a share of the columns of all parts of an item. A group of lanes has four columns, a
  /// lane the words of one part, which it resets for the next layer.
  __device__ void merge_parts(const key_item& item) {
    constexpr int quads = head_dim / 4;
    const int parts = item.parts;
    const int total = group_ * quads;
    const int begin = total * item.number / parts;
    const int end = total * (item.number + 1) / parts;
    int lanes = 2;
    while (lanes < parts && lanes < 32) lanes *= 2;
    const int groups = 32 / lanes;
#pragma unroll 1
    for (int first = begin + warp_ * groups; first < end; first += warps * groups) {
      const int quad = first + lane_ / lanes;
      float largest = -INFINITY;
      float weight = 0;
      step_quad sum{};
#pragma unroll 1
      for (int p = 0; p < parts; p += lanes) {
        const int mine = p + lane_ % lanes;
        part_arrival part;
        if (quad < end && mine < parts) part.at = part_at(item.place_of(mine), quad);
        await(part);
        if (part.at == nullptr) continue;
        uint4* const at = const_cast<uint4*>(part.at);
        if (!left_out(mutant::step_reset)) {
          store_sum_words(at, part_arrival::words::nothing());
          store_sum_words(at + 1, part_arrival::words::nothing());
        }
        const step_quad numbers = step_quad::of(part_arrival::words::sums_of(part.numbers));
        step_quad more = step_quad::of(part_arrival::words::sums_of(part.sums));
        const float before = largest;
        largest = fmaxf(largest, numbers.v[0]);
        const float factor = power_of_2(numbers.v[0] - largest);
        const float shrink = power_of_2(before - largest);
        weight = weight * shrink + numbers.v[1] * factor;
        sum.scale(shrink);
        more.scale(factor);
        sum.add(more);
      }
      float common = largest;
#pragma unroll 1
      for (int step = lanes / 2; step > 0; step /= 2)
        common = fmaxf(common, __shfl_xor_sync(everybody, common, step));
      const float factor = largest > -INFINITY ? power_of_2(largest - common) : 0;
      weight *= factor;
      sum.scale(factor);
#pragma unroll 1
      for (int step = lanes / 2; step > 0; step /= 2) {
        weight += __shfl_xor_sync(everybody, weight, step);
#pragma unroll
        for (float& v : sum.v) v += __shfl_xor_sync(everybody, v, step);
      }
      if (lane_ % lanes == 0 && quad < end)
        store(item, quad / quads, quad % quads * 4, sum, __frcp_rn(weight));
    }
  }
  /// Waits for the parts of a warp's lanes, but for no other after a wait has failed: the block
  /// then goes on with what it finds.
  __device__ void await(part_arrival& part) const {
    volatile std::int32_t& failed = block_.numbers().failed;
    for (int polls = 0; polls < patience; ++polls) {
      if (__all_sync(everybody, part.look() != 0 ? 1 : 0) != 0) return;
      if (left_out(mutant::step_parts)) return;
    }
    if (failed == 0 && !wait_for_blocks(block_.a.run, part, slot_)) failed = 1;
  }

  const step_block& block_;
  step_cache cache_;
  int slot_;
  int group_;
  int warp_;
  int lane_;
  float cosines_[of_lane];
  float sines_[of_lane];
  float out_[tiles][4];
  float most_[2];
  float weight_[2];
};

}  // namespace untax::gpu
