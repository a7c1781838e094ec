#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <untax/core/activation.hpp>
#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>
#include <untax/world/world.hpp>

namespace untax::gpu {

/// A model at this rank, as a kernel of all its layers takes it.
struct step_model {
  /// A layer. Vectors are null where the model has none; norms have their offset added.
  struct layer {
    const_matrix qkv, output, gate_up, down;
    const void* qkv_bias = nullptr;
    const void* output_bias = nullptr;
    const void* gate_up_bias = nullptr;
    const void* down_bias = nullptr;
    const void* q_norm = nullptr;
    const void* k_norm = nullptr;
    const void* input_norm = nullptr;
    const void* mlp_norm = nullptr;
    matrix keys;  ///< [pages * page_size, kv_heads * head_dim], dense
    matrix values;
    bool windowed = false;  ///< tokens see no more than `window` keys
  };

  dtype type = dtype::bf16;
  int most_tokens = 0;  ///< of a step
  int hidden = 0;
  int heads = 0;     ///< of queries at this rank
  int kv_heads = 0;  ///< at this rank
  int head_dim = 0;
  int rotated = 0;
  int intermediate = 0;  ///< at this rank
  int page_size = 0;
  int sequence_pages = 0;  ///< of a row of the page table
  int window = 0;          ///< keys, with the token's own; 0: no layer has a window
  activation_function gate = activation_function::swiglu;
  float epsilon = 0;
  float scale = 0;                   ///< of attention's logits
  const float* rotations = nullptr;  ///< as `rope_append_operands` has them
  const void* final_norm = nullptr;
  std::vector<layer> layers;
};

/// The tokens of a step, one of each sequence. All arrays are in memory of the rank's GPU.
struct step_tokens {
  const std::int32_t* lengths = nullptr;     ///< [tokens]: keys, with the token's own
  const std::int32_t* page_table = nullptr;  ///< [tokens, sequence_pages]
  const void* x = nullptr;                   ///< [tokens, hidden]: the residual stream, read
  void* normed = nullptr;                    ///< [tokens, hidden]: written
  int tokens = 0;
};

/// All layers of a step of decoding in one kernel, for few tokens. README.md draws it.
class decode_step {
 public:
  /// Whether there is a kernel for such a model; its pointers are not looked at.
  [[nodiscard]] static bool serves(const world& w, const step_model& model);

  /// Collective. `w` and what the model points to have to outlive it. Throws `out_of_memory`.
  decode_step(world& w, const step_model& model);
  decode_step(const decode_step&) = delete;
  decode_step& operator=(const decode_step&) = delete;
  ~decode_step();

  /// Collective. Appends the tokens' keys and values to the cache, and leaves their normalised rows
  /// behind the last layer. With a stream it only launches, and can be captured.
  void run(const step_tokens& tokens, stream_ref stream);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace untax::gpu
