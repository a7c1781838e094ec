#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/ops/linear.hpp>
#include <untax/ops/rope_table.hpp>

namespace untax {

/// A decoder-only transformer of a family that untax runs: its shape and the operations of its
/// layers.
struct decoder_config {
  std::string family;  ///< the model_type
  dtype type = dtype::bf16;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;                              ///< the most tokens of a sequence
  float epsilon = 1e-6F;                                   ///< of all norms
  activation_function gate = activation_function::swiglu;  ///< of the MLP
  rope_frequencies rotation;
  rope_frequencies local_rotation;  ///< of layers with a window, in families that have another one
  bool qkv_bias = false;
  bool output_bias = false;  ///< of the projection of attention
  bool mlp_bias = false;
  bool head_norms = false;      ///< RMSNorm of each head of queries and keys
  bool post_norms = false;      ///< RMSNorm of what attention and MLP add to the residual
  bool fused_weights = false;   ///< files have qkv_proj and gate_up_proj
  bool tied_embedding = false;  ///< the head is the embedding
  float norm_offset = 0;        ///< added to the weights of norms: 1 of Gemma
  float embedding_scale = 1;
  float attention_scale = 0;  ///< 0: 1 / sqrt(head_dim)
  float attention_cap = 0;    ///< soft cap of attention's logits; 0: none
  float logit_cap = 0;        ///< the same of the head's
  /// [layers]: the last keys that a layer sees, with the token's own; 0: all of them.
  std::vector<std::int64_t> windows;
};

/// Reads the config.json `file`, or the one in the folder `file`. Throws `invalid_argument` with
/// file, field, value and what would be right, and `unsupported` with the field and the reason for
/// a family or a property that untax does not run.
[[nodiscard]] decoder_config load_decoder_config(const std::filesystem::path& file);

/// The same from text. `origin` is the name of the file in messages.
[[nodiscard]] decoder_config parse_decoder_config(std::string_view text, const std::string& origin);

}  // namespace untax
