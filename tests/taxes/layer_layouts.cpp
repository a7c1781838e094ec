// Models whose layers differ, or are no attention, are refused by the name of the field; sizes that
// published files leave to the defaults of their family are those.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <untax/taxes/layer.hpp>

#include "sample.hpp"

namespace untax::test {
namespace {

nlohmann::json decoder(const char* type) {
  return {{"model_type", type},   {"torch_dtype", "bfloat16"},  {"hidden_size", 256},
          {"vocab_size", 1000},   {"num_hidden_layers", 4},     {"num_attention_heads", 8},
          {"hidden_act", "silu"}, {"num_key_value_heads", 4},   {"intermediate_size", 512},
          {"head_dim", 32},       {"architectures", {"AModel"}}};
}
nlohmann::json with(nlohmann::json config, const nlohmann::json& more) {
  config.update(more);
  return config;
}
model_config parse(const nlohmann::json& config) { return parse_model(config.dump(), "m.json"); }
std::string refusal(const nlohmann::json& config) {
  return error_text([&] { (void)parse(config); });
}

TEST(layer_layouts, of_layers_without_attention_are_refused_by_the_field) {
  const auto expect = [](const char* type, const nlohmann::json& more, const std::string& text) {
    const std::string said = refusal(with(decoder(type), more));
    EXPECT_TRUE(said.starts_with("m.json: " + text)) << type << more << "\nsays: " << said;
    EXPECT_NE(said.find("all of whose layers are attention"), std::string::npos) << said;
  };
  expect("kimi_linear", {{"linear_attn_config", {{"full_attn_layers", {4, 8}}}}},
         "linear_attn_config describes layers one by one");
  expect("lfm2", {{"layer_types", {"conv", "conv", "full_attention", "conv"}}},
         "layer_types holds \"conv\"");
  expect("minimax", {{"layer_types", {"full_attention", "linear_attention"}}},
         "layer_types holds \"linear_attention\"");
  expect("minimax_m1", {{"attn_type_list", {0, 0, 0, 1}}}, "attn_type_list does not hold 1");
  expect("deci", {{"block_configs", nlohmann::json::array({nlohmann::json::object()})}},
         "block_configs describes layers one by one");
  expect("something", {{"mamba_expand", 2}}, "mamba_expand tells of layers without attention");
  expect("something", {{"conv_L_cache", 3}}, "conv_L_cache tells of layers without attention");
  // Also if the model_type is known.
  expect("llama", {{"layer_types", {"mamba"}}}, "layer_types holds \"mamba\"");
  for (const char* type : {"qwen3", "something"}) {
    EXPECT_EQ(refusal(with(decoder(type), {{"layer_types", {"full_attention", "sliding_attention"}},
                                           {"attn_type_list", {1, 1, 1, 1}}})),
              "");
  }
}

TEST(layer_layouts, of_layers_that_differ_in_size_are_refused_by_the_field) {
  const auto said = [](const char* type, const nlohmann::json& more) {
    return refusal(with(decoder(type), more));
  };
  EXPECT_TRUE(said("gemma4_text", {{"global_head_dim", 512}})
                  .starts_with("m.json: global_head_dim is 512, and head_dim 32"));
  EXPECT_TRUE(
      said("gemma4_text", {{"num_global_key_value_heads", 2}})
          .starts_with("m.json: num_global_key_value_heads is 2, and num_key_value_heads 4"));
  EXPECT_TRUE(said("mimo", {{"swa_num_attention_heads", 16}})
                  .starts_with("m.json: swa_num_attention_heads is 16"));
  EXPECT_TRUE(said("gemma3n_text", {{"num_kv_shared_layers", 2}})
                  .starts_with("m.json: num_kv_shared_layers is 2"));
  EXPECT_TRUE(said("mimo", {{"v_head_dim", 16}}).starts_with("m.json: v_head_dim is 16"));
  EXPECT_EQ(said("gemma4_text", {{"global_head_dim", 32},
                                 {"num_global_key_value_heads", 4},
                                 {"num_kv_shared_layers", 0}}),
            "");
}

TEST(layer_layouts, heads_of_keys_have_several_names) {
  nlohmann::json config = with(decoder("a_falcon"), {{"multi_query", true}});
  config.erase("num_key_value_heads");
  EXPECT_EQ(parse(config).kv_heads, 1);
  config["num_kv_heads"] = 8;
  EXPECT_EQ(parse(config).kv_heads, 1) << "as in Falcon's own code";
  config["new_decoder_architecture"] = true;
  EXPECT_EQ(parse(config).kv_heads, 8);
  config["multi_query"] = "yes";
  config["new_decoder_architecture"] = false;
  EXPECT_EQ(refusal(config), "m.json: multi_query is \"yes\"; should be true or false");
  config.erase("multi_query");
  config.erase("num_kv_heads");
  EXPECT_EQ(
      parse(with(config, {{"multi_query_attention", true}, {"multi_query_group_num", 2}})).kv_heads,
      2);
  EXPECT_EQ(parse(config).kv_heads, 8);
}

TEST(layer_layouts, gates_follow_from_the_activation) {
  EXPECT_FALSE(parse(with(decoder("apertus"), {{"hidden_act", "xielu"}})).gated_mlp);
  EXPECT_FALSE(parse(with(decoder("something"), {{"hidden_act", "xielu"}})).gated_mlp);
  EXPECT_TRUE(parse(decoder("something")).gated_mlp);
  EXPECT_TRUE(refusal(with(decoder("something"), {{"hidden_act", "maxout"}}))
                  .starts_with("m.json: hidden_act is \"maxout\"; untax does not know whether"));
}

TEST(layer_layouts, text_parts_lie_deeper_in_some) {
  nlohmann::json omni = {{"model_type", "qwen2_5_omni"},
                         {"thinker_config", {{"text_config", decoder("qwen2_5_omni_text")}}},
                         {"talker_config", {{"hidden_size", 8}}}};
  EXPECT_EQ(parse(omni).hidden, 256);
  omni["thinker_config"]["text_config"]["hidden_size"] = -1;
  EXPECT_TRUE(refusal(omni).starts_with("m.json: thinker_config.text_config.hidden_size is -1"));
}

// google/gemma-3-4b-it and gemma-3-12b-it, as published.
TEST(layer_layouts, defaults_of_a_family_are_taken_where_files_rely_on_them) {
  nlohmann::json gemma = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                          {"model_type", "gemma3"},
                          {"torch_dtype", "bfloat16"},
                          {"text_config",
                           {{"hidden_size", 2560},
                            {"intermediate_size", 10240},
                            {"model_type", "gemma3_text"},
                            {"num_hidden_layers", 34},
                            {"sliding_window", 1024}}}};
  model_config model = parse(gemma);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_dim, 256);
  ASSERT_FALSE(model.notes.empty());
  EXPECT_EQ(model.notes[0],
            "The file gives no num_attention_heads; 8 is taken, the default of gemma3_text.");
  gemma["text_config"].update(
      {{"hidden_size", 3840}, {"num_attention_heads", 16}, {"num_key_value_heads", 8}});
  EXPECT_EQ(parse(gemma).head_dim, 256) << "not 3840 / 16";
}

TEST(layer_layouts, non_finite_numbers_are_accepted_in_unused_fields) {
  std::string text = decoder("qwen3").dump();
  text.insert(1, R"("time_step_limit": [0.0, Infinity], "x": NaN, )");
  EXPECT_EQ(parse_model(text, "m.json").hidden, 256);
  const std::string used =
      error_text([] { (void)parse_model(R"({"hidden_size": Infinity})", "m.json"); });
  EXPECT_EQ(used, "m.json: hidden_size is Infinity; should be a whole number from 1 to 4194304");
}

TEST(layer_layouts, names_with_control_characters_are_refused) {
  EXPECT_EQ(
      refusal(with(decoder("llama"), {{"architectures", {"a\x1b[31m"}}})),
      "m.json: architectures contains the control character U+001B; should be a text that can "
      "be shown");
  EXPECT_EQ(refusal(with(decoder("llama"), {{"comment", "a\x1b[31m"}})), "");
}

}  // namespace
}  // namespace untax::test
