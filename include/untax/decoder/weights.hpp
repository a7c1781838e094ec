#pragma once

#include <vector>

#include <untax/core/matrix.hpp>

namespace untax {

/// This rank's weights of a layer: the parts that `shares_of` names, dense or with a stride, of the
/// configuration's element type. Pointers are null where the family has no such vector. Norms have
/// the offset of the family added already. On a GPU all of them are in its memory.
struct decoder_layer_weights {
  const_matrix qkv;      ///< rows of queries, then of keys, then of values
  const_matrix output;   ///< [hidden, heads * head_dim]
  const_matrix gate_up;  ///< rows of gate and up, interleaved in groups of 8 (`interleaved_rows`)
  const_matrix down;     ///< [hidden, intermediate]
  const void* qkv_bias = nullptr;             ///< rows of `qkv`
  const void* output_bias = nullptr;          ///< [hidden]; at rank 0, null elsewhere
  const void* gate_up_bias = nullptr;         ///< rows of `gate_up`
  const void* down_bias = nullptr;            ///< [hidden]; at rank 0, null elsewhere
  const void* q_norm = nullptr;               ///< [head_dim]
  const void* k_norm = nullptr;               ///< [head_dim]
  const void* input_norm = nullptr;           ///< [hidden], before attention
  const void* mlp_norm = nullptr;             ///< [hidden], before the MLP
  const void* attention_post_norm = nullptr;  ///< [hidden], of what attention adds to the residual
  const void* mlp_post_norm = nullptr;        ///< the same of the MLP
};

/// This rank's weights of a model.
struct decoder_weights {
  const_matrix embedding;  ///< [vocabulary, hidden]
  const_matrix head;       ///< of the same size; may be the embedding
  const void* final_norm = nullptr;
  std::vector<decoder_layer_weights> layers;
};

}  // namespace untax
