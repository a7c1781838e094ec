#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>

namespace untax {

/// The experts of a mixture-of-experts model. Layers that are not MoE layers have one dense MLP.
struct expert_config {
  std::int64_t experts = 0;            ///< routed experts of an MoE layer
  std::int64_t experts_per_token = 0;  ///< routed experts of each token; 0: not given
  std::int64_t intermediate = 0;       ///< inner width of one routed expert
  std::int64_t shared_intermediate =
      0;  ///< inner width of the experts that every token visits as well; 0: there are none
  std::int64_t layers = 0;  ///< number of layers that are MoE layers
};

/// Multi-head latent attention (DeepSeek): q, k and v are computed from small latent vectors.
struct latent_attention {
  std::int64_t q_rank = 0;  ///< q_lora_rank; 0: q is projected directly from the hidden state
  std::int64_t kv_rank = 0;
  std::int64_t qk_nope_head = 0;
  std::int64_t qk_rope_head = 0;
  std::int64_t v_head = 0;
};

/// The shape of a decoder-only transformer, from a Hugging Face config.json.
struct model_config {
  std::string name;  ///< stem of the file; of its directory when the file is called config.json
  std::string architecture;  ///< first of "architectures", or empty
  std::string model_type;
  dtype type = dtype::bf16;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;  ///< inner width of the dense MLP; 0: there is none
  bool gated_mlp = true;          ///< gate and up projection (SwiGLU and kin), or up alone
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;  ///< 0: not given
  std::optional<expert_config> moe;
  std::optional<latent_attention> latent;
  std::vector<std::string> notes;  ///< assumptions, and parts of the file without effect here

  /// Layers with a dense MLP.
  [[nodiscard]] std::int64_t dense_layers() const noexcept {
    return moe ? layers - moe->layers : layers;
  }
};

/// Reads the config.json `file`, or the one in the folder `file`. Throws `invalid_argument` with
/// the file, the field, its value and the right values, for a file that is missing, unreadable or
/// not JSON (with line and column), for a model_type that is known neither by name nor by its
/// fields, and for a field that is missing, not a positive whole number, or larger than in any
/// model.
[[nodiscard]] model_config load_model(const std::filesystem::path& file);

/// As above, from text. `origin` is the name of the file in messages, and gives the model its name.
[[nodiscard]] model_config parse_model(std::string_view text, const std::filesystem::path& origin);

}  // namespace untax
