#include <untax/decoder/config.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "tests/decoder/models.hpp"
#include "tests/errors.hpp"

using namespace untax;

namespace untax_test {
namespace {

TEST(decoder_config, families_have_their_properties) {
  const decoder_config llama = parsed(small_model("llama"));
  EXPECT_EQ(llama.kv_heads, 4);
  EXPECT_FALSE(llama.qkv_bias || llama.head_norms || llama.post_norms || llama.tied_embedding);
  EXPECT_FLOAT_EQ(llama.epsilon, 1e-5F);
  const decoder_config biased = parsed(small_model("llama", {{"attention_bias", true}}));
  EXPECT_TRUE(biased.qkv_bias && biased.output_bias);
  EXPECT_TRUE(parsed(small_model("qwen2")).qkv_bias);
  EXPECT_FALSE(parsed(small_model("qwen2")).output_bias);
  EXPECT_TRUE(parsed(small_model("qwen3")).head_norms);
  EXPECT_TRUE(parsed(small_model("phi3")).fused_weights);
  const decoder_config gemma =
      parsed(small_model("gemma3_text", {{"query_pre_attn_scalar", 64}, {"hidden_act", nullptr}}));
  EXPECT_TRUE(gemma.post_norms && gemma.head_norms && gemma.tied_embedding);
  EXPECT_EQ(gemma.norm_offset, 1);
  EXPECT_EQ(gemma.gate, activation_function::geglu);
  EXPECT_FLOAT_EQ(gemma.attention_scale, 0.125F);
}

TEST(decoder_config, rotations_are_read_in_both_layouts) {
  const nlohmann::json scaling = {{"rope_type", "llama3"},
                                  {"factor", 8.0},
                                  {"low_freq_factor", 1.0},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 64}};
  nlohmann::json parameters = scaling;
  parameters["rope_theta"] = 5e5;
  for (const auto& fields :
       {small_model("llama", {{"rope_scaling", scaling}, {"rope_theta", 5e5}}),
        small_model("llama", {{"rope_parameters", parameters}, {"rope_theta", nullptr}})}) {
    const rope_frequencies read = parsed(fields).rotation;
    EXPECT_EQ(read.scaling, rope_scaling::llama3);
    EXPECT_EQ(read.theta, 5e5);
    EXPECT_EQ(read.factor, 8);
    EXPECT_EQ(read.original_length, 64);
    EXPECT_EQ(read.rotated, 8);
  }
}

TEST(decoder_config, gemma_3_rotates_layers_with_a_window_by_another_base) {
  const nlohmann::json parameters = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  for (const auto& more :
       {nlohmann::json{{"rope_parameters", parameters}},
        nlohmann::json{{"rope_theta", 1e6},
                       {"rope_local_base_freq", 1e4},
                       {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8}}}}}) {
    nlohmann::json fields = small_model("gemma3_text", more);
    fields["sliding_window"] = 512;
    fields["num_hidden_layers"] = 7;
    fields["hidden_act"] = "gelu_pytorch_tanh";
    const decoder_config read = parsed(fields);
    EXPECT_EQ(read.rotation.factor, 8);
    EXPECT_EQ(read.local_rotation.theta, 1e4);
    EXPECT_EQ(read.local_rotation.scaling, rope_scaling::none);
    EXPECT_EQ(read.windows, (std::vector<std::int64_t>{512, 512, 512, 512, 512, 0, 512}));
  }
}

TEST(decoder_config, windows_are_of_the_layers_that_the_family_gives_them) {
  const auto windows = [](const std::string& family, const nlohmann::json& more) {
    return parsed(small_model(family, more)).windows;
  };
  using numbers = std::vector<std::int64_t>;
  const nlohmann::json window = {{"sliding_window", 32}};
  EXPECT_EQ(windows("llama", window), (numbers{0, 0}));
  EXPECT_EQ(windows("mistral", window), (numbers{32, 32}));
  EXPECT_EQ(windows("mistral", {{"sliding_window", nullptr}}), (numbers{0, 0}));
  EXPECT_EQ(windows("qwen2", window), (numbers{0, 0}));
  EXPECT_EQ(
      windows("qwen2",
              {{"sliding_window", 32}, {"use_sliding_window", true}, {"max_window_layers", 1}}),
      (numbers{0, 32}));
  EXPECT_EQ(windows("gemma2", window), (numbers{32, 0}));
  EXPECT_EQ(windows("gemma2", {{"sliding_window", 32},
                               {"layer_types", {"full_attention", "sliding_attention"}}}),
            (numbers{0, 32}));
}

TEST(decoder_config, what_untax_does_not_run_is_refused_by_the_name_of_the_field) {
  const auto refused = [](const std::string& family, const nlohmann::json& more,
                          const std::string& field, errc code = errc::unsupported) {
    expect_error(error_of([&] { (void)parsed(small_model(family, more)); }), code, {field});
  };
  refused("mamba", nlohmann::json::object(), "model_type");
  refused("llama", {{"num_local_experts", 8}}, "num_local_experts");
  refused("llama", {{"quantization_config", {{"bits", 4}}}}, "quantization_config");
  refused("llama", {{"hidden_act", "relu"}}, "hidden_act");
  refused("llama", {{"rope_scaling", {{"rope_type", "longrope"}}}}, "rope_scaling.rope_type");
  refused("gemma2", {{"sliding_window", 8}, {"layer_types", {"full_attention", "linear"}}},
          "layer_types");
  refused("llama", {{"rope_scaling", {{"rope_type", "llama3"}}}}, "rope_scaling.factor",
          errc::invalid_argument);
  refused("llama", {{"num_key_value_heads", 3}}, "num_key_value_heads", errc::invalid_argument);
  refused("llama", {{"hidden_size", -1}}, "hidden_size", errc::invalid_argument);
  refused("llama", {{"rms_norm_eps", "small"}}, "rms_norm_eps", errc::invalid_argument);
}

}  // namespace
}  // namespace untax_test
