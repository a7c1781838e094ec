#include "decoder/family.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include "decoder/config_fields.hpp"

namespace untax {
namespace {

constexpr decoder_family gemma(std::string_view type, window_rule windows, bool head_norms) {
  return {.type = type,
          .windows = windows,
          .head_norms = head_norms,
          .post_norms = true,
          .tied = true,
          .scaled_embedding = true,
          .norm_offset = 1,
          .gate = activation_function::geglu,
          .kv_heads = 4,
          .head_dim = 256};
}

constexpr auto families = std::to_array<decoder_family>({
    {.type = "llama"},
    {.type = "mistral", .windows = window_rule::every, .kv_heads = 8},
    {.type = "qwen2", .windows = window_rule::upper, .qkv_bias = true},
    {.type = "qwen3", .windows = window_rule::upper, .head_norms = true, .head_dim = 128},
    {.type = "phi3", .windows = window_rule::every, .fused_weights = true},
    {.type = "gemma",
     .tied = true,
     .scaled_embedding = true,
     .norm_offset = 1,
     .gate = activation_function::geglu,
     .head_dim = 256},
    gemma("gemma2", window_rule::alternate, false),
    gemma("gemma3_text", window_rule::pattern, true),
});

}  // namespace

const decoder_family& family_of(const config_reader& config) {
  const std::string type = config.text("model_type");
  std::string names;
  for (const decoder_family& family : families) {
    if (family.type == type) return family;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family.type);
  }
  refuse_property(config, "model_type", "the families are " + names);
}

}  // namespace untax
