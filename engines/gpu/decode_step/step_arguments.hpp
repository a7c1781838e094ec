#pragma once

#include <cuda.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

#include <untax/core/activation.hpp>
#include <untax/core/host_device.hpp>

#include "engines/gpu/channel/run_arguments.hpp"

namespace untax::gpu {

/// A layer at this rank: weights and cache, as `decoder_layer_weights` has them. TMA reads matrices
/// in panels of 64 columns (`panel_map_of`).
struct step_layer {
  CUtensorMap weights[4];    ///< of the products
  CUtensorMap cached[2];     ///< keys and values
  const void* bias[4] = {};  ///< of the products, or null
  void* keys = nullptr;      ///< [pages * page_size, kv_heads * head_dim], dense
  void* values = nullptr;
  int windowed = 0;          ///< 1 if tokens see no more than the window of the step
  std::uint32_t biases = 0;  ///< a bit for each product that has one
  const void* q_norm = nullptr;
  const void* k_norm = nullptr;
  const void* input_norm = nullptr;
  const void* mlp_norm = nullptr;
};

/// The products of a layer, in their order.
enum class step_product : std::uint8_t { qkv, output, gate_up, down };

/// Sizes of a step, the same arithmetic in kernels and on the host. Blocks share the rows of each
/// weight matrix in units of eight; a unit is read in chunks of its rows.
struct step_shape {
  int blocks = 0;
  int tokens = 0;  ///< of this run
  int hidden = 0;
  int heads = 0;     ///< of queries at this rank
  int kv_heads = 0;  ///< at this rank
  int head_dim = 0;
  int intermediate = 0;  ///< at this rank
  int layers = 0;
  int ring_stages = 0;        ///< of weights and of keys
  int activation_stages = 0;  ///< of rows that products take
  int token_bits = 0;         ///< log2 of the tokens, rounded up
  int windows = 0;            ///< whether some layers have a window
  int box_bits = 0;           ///< log2 of the keys that TMA reads at once: of a page or of a stage

  static constexpr int unit_rows = 8;
  static constexpr int chunk = 512;              ///< columns
  static constexpr int warps = 8;                ///< that multiply; each has a part of a chunk
  static constexpr int slice = chunk / warps;    ///< columns of a warp
  static constexpr int panel_bytes = slice * 2;  ///< of a row
  static constexpr int stage_bytes = unit_rows * chunk * 2;
  /// Bytes between the rows that are multiplied. Rows of 16 bytes then lie in different banks.
  static constexpr int row_pitch = chunk * 2 + 16;
  static constexpr int most_tokens = 16;
  static constexpr int stage_keys = 32;    ///< keys, or values, of a stage
  static constexpr int most_units = 16;    ///< whose sums a warp keeps in registers
  static constexpr int sum_bytes = 18048;  ///< in which warps add their results
  static constexpr int most_group = 16;    ///< heads of queries that share one of keys
  static constexpr int arrivals_of_layer = 5;
  static constexpr int vector_stages = 4;
  static constexpr int item_bytes = 56;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int group() const noexcept { return heads / kv_heads; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int qkv_columns() const noexcept {
    return (heads + 2 * kv_heads) * head_dim;
  }
  /// Times that each block arrives in a step.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t arrivals() const noexcept {
    return 1 + std::int64_t{arrivals_of_layer} * layers;
  }
  /// Columns of the weights of a product.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int depth(step_product which) const noexcept {
    if (which == step_product::output) return heads * head_dim;
    return which == step_product::down ? intermediate : hidden;
  }

  struct units {
    int first = 0;
    int count = 0;
  };
  /// Columns of the result of a product; of gate_up, of each of both.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int columns(step_product which) const noexcept {
    if (which == step_product::qkv) return qkv_columns();
    return which == step_product::gate_up ? intermediate : hidden;
  }
  /// The units of a block. Gate and up alternate, so those of gate_up are pairs.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr units share(step_product which,
                                                        int block) const noexcept {
    const int total = columns(which) / unit_rows;
    const int begin = total * block / blocks;
    const int end = total * (block + 1) / blocks;
    const int each = which == step_product::gate_up ? 2 : 1;
    return {begin * each, (end - begin) * each};
  }
  /// The most units of the hidden state that a block has.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int most_hidden_units() const noexcept {
    return (hidden / unit_rows + blocks - 1) / blocks;
  }
  /// Bytes of the vectors that go with a product of a block: its part of the bias and of the weight
  /// of the norm that follows; or the weights of the norms of heads.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int norm_at() const noexcept {
    int units = most_hidden_units();
    for (const step_product which : {step_product::qkv, step_product::gate_up}) {
      const int each = which == step_product::gate_up ? 2 : 1;
      const int more = (columns(which) / unit_rows + blocks - 1) / blocks * each;
      if (more > units) units = more;
    }
    return units * unit_rows * 2;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int vector_bytes() const noexcept {
    const int of_products = norm_at() + most_hidden_units() * unit_rows * 2;
    const int of_heads = head_dim * 4;
    return of_products > of_heads ? of_products : of_heads;
  }
  /// Bytes between the rows of queries; rows of 16 bytes then lie in different banks.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int query_pitch() const noexcept {
    return head_dim * 2 + 16;
  }
  /// Words of 16 bytes of a part of attention's result in the workspace: for each four columns of a
  /// head a word of sums, and one with their maximum and weight.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int part_words() const noexcept {
    return group() * head_dim / 4 * 2;
  }

  // Shared memory, by the order of its parts.

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int activations_at() const noexcept {
    return ring_stages * stage_bytes;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int sums_at() const noexcept {
    return activations_at() + activation_stages * tokens * row_pitch;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int residual_at() const noexcept {
    return sums_at() + sum_bytes;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int queries_at() const noexcept {
    return residual_at() + most_hidden_units() * tokens * unit_rows * 2;
  }
  /// Behind 16 rows of queries follow a row of keys and one of values.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int vectors_at() const noexcept {
    return queries_at() + (most_group + 2) * query_pitch();
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int items_at() const noexcept {
    return vectors_at() + vector_stages * vector_bytes();
  }
  /// Lists of what a block attends to: for layers without a window and for those with one.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int item_capacity() const noexcept {
    return tokens * kv_heads;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int numbers_at() const noexcept {
    return items_at() + (1 + windows) * item_capacity() * item_bytes;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int shared_bytes() const noexcept {
    return numbers_at() + 1024;
  }
};

/// The arguments of a step of decoding.
struct step_arguments {
  run_arguments run;  ///< the inbox takes words of peers; `epochs`: of each block
  step_shape shape;
  const step_layer* layers = nullptr;
  const void* final_norm = nullptr;
  activation_function function = activation_function::swiglu;
  float epsilon = 0;
  bool has_head_norms = false;
  int window = 0;   ///< keys that a token sees in some layers, with its own
  float scale = 0;  ///< of attention's logits
  int rotated = 0;
  int page_size = 0;
  int sequence_pages = 0;  ///< of a row of the page table
  int most_tokens = 0;     ///< rows of the inbox
  const float* rotations = nullptr;
  const std::int32_t* lengths = nullptr;  ///< keys of each sequence, with the token's own
  const std::int32_t* page_table = nullptr;
  const void* x = nullptr;  ///< [tokens, hidden], the residual stream
  void* normed = nullptr;   ///< [tokens, hidden], written
  // Between the parts of a step, in this GPU's memory.
  void* scaled = nullptr;     ///< [tokens, hidden]: the residual stream times the weight of a norm
  void* projected = nullptr;  ///< [tokens, qkv_columns]
  void* attended = nullptr;   ///< [tokens, heads * head_dim]
  void* activated = nullptr;  ///< [tokens, intermediate]
  float* squares = nullptr;   ///< [most_tokens, blocks]: of the residual stream
  uint4* parts = nullptr;     ///< [2 blocks, part_words] of attention; zero where none has come
  std::uint64_t* arrived = nullptr;  ///< arrivals of all blocks in all steps
};

}  // namespace untax::gpu
