#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/core/types.hpp>

namespace untax::gpu {

/// Attention of every row of queries to the keys of its sequence. `queries` and `keys` count rows.
/// A row holds all heads of a token, `head_dim` elements each.
struct flash_shape {
  int batch = 1;
  int heads = 1;
  int kv_heads = 1;  ///< a divisor of `heads`: head h reads key and value head h / group()
  int head_dim = 128;
  int queries = 0;      ///< per sequence; of the longest one if lengths differ
  int keys = 0;         ///< per sequence; of the longest one if lengths differ
  bool causal = false;  ///< the last query sees all keys, the one before it all but one, ...
  float scale = 1;      ///< factor of the logits; positive
  dtype type = dtype::bf16;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int group() const noexcept { return heads / kv_heads; }
};

/// The caller's memory, on the GPU. Strides are in elements; rows begin at multiples of 16 bytes.
struct flash_operands {
  int query_rows = 0;             ///< of the matrix of queries
  int key_rows = 0;               ///< of the matrices of keys and values
  const void* queries = nullptr;  ///< [query_rows, heads * head_dim]
  const void* keys = nullptr;     ///< [key_rows, kv_heads * head_dim]
  const void* values = nullptr;
  void* out = nullptr;        ///< [query_rows, heads * head_dim]
  float* log_sums = nullptr;  ///< [query_rows, heads], dense; may be null
  const std::int32_t* query_begins =
      nullptr;  ///< [batch + 1]: rows where sequences begin; null: equal lengths
  const std::int32_t* key_begins = nullptr;
  std::int64_t queries_stride = 0;
  std::int64_t keys_stride = 0;
  std::int64_t values_stride = 0;
  std::int64_t out_stride = 0;
};

/// Query rows of an MMA warpgroup.
inline constexpr int flash_group_rows = 64;

/// The configuration of a block for a head width: `groups` MMA warpgroups of 64 query rows each,
/// `keys` keys at a time, and `places` ring stages, each of which holds keys or values. With width
/// 128 causal attention takes fewer keys at a time, so that less is multiplied only to be masked.
struct flash_config {
  int width;
  int groups;
  int keys;
  int places;

  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr flash_config of(int width, bool causal) {
    if (width == 64) return {64, 3, 128, 8};
    if (width == 256) return {256, 2, 80, 4};
    return causal ? flash_config{128, 2, 128, 6} : flash_config{128, 2, 176, 4};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rows() const { return groups * flash_group_rows; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int threads() const { return (groups + 1) * 128; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int query_bytes() const { return rows() * width * 2; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int place_bytes() const { return keys * width * 2; }
};

}  // namespace untax::gpu
