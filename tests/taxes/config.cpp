#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <untax/taxes/layer.hpp>

#include "sample.hpp"

namespace untax::test {
namespace {

nlohmann::json valid() {
  return nlohmann::json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "torch_dtype": "bfloat16", "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 512,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4})");
}

model_config parse(const nlohmann::json& config) {
  return parse_model(config.dump(), "some/model.json");
}

std::string refusal(const nlohmann::json& config) {
  return error_text([&] { (void)parse(config); });
}

std::string refusal_with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = valid();
  config[key] = value;
  return refusal(config);
}

TEST(model_files, all_parse) {
  int result = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(model_file("llama-3.2-1b")).parent_path())) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path());
    const model_config model = load_model(entry.path());
    EXPECT_EQ(model.name, entry.path().stem());
    EXPECT_FALSE(model.architecture.empty());
    EXPECT_EQ(model.type, dtype::bf16);
    ++result;
  }
  EXPECT_GE(result, 8);
}

// Of each family one, by the fields that it is published with.
TEST(model_files, every_family) {
  const auto family = [](const char* name) {
    return load_model(std::filesystem::path(UNTAX_SOURCE_DIR) / "tests/taxes/configs" / name);
  };
  std::size_t files = 0;
  for (const char* folder : {"models", "tests/taxes/configs"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(UNTAX_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".json") continue;
      const model_config model = load_model(entry);
      EXPECT_FALSE(layer_operations(model, 2, 16, 0).empty()) << entry;
      EXPECT_FALSE(layer_notes(model, 2, 0).empty()) << entry;
      ++files;
    }
  }
  EXPECT_GE(files, 14U);
  EXPECT_EQ(family("gemma-2-9b.json").head_dim, 256);
  EXPECT_FALSE(family("phi-2.json").gated_mlp);
  EXPECT_TRUE(family("phi-3-mini.json").gated_mlp);
  EXPECT_EQ(family("qwen3-8b.json").kv_heads, 8);
  const model_config routed = family("qwen3-30b-a3b.json");
  ASSERT_TRUE(routed.moe);
  EXPECT_EQ(routed.dense_layers(), 0);
  // 8 experts of 3 x 2048 x 768 weights, two operations each, and 2 bytes.
  std::string text;
  for (const std::string& note : layer_notes(routed, 2, 0)) text += note + "\n";
  EXPECT_NE(text.find("75.5 MFLOP"), std::string::npos) << text;
  EXPECT_NE(text.find("1.125 GiB, of which a token reads 72 MiB"), std::string::npos) << text;
}

TEST(model_files, a_folder_stands_for_its_config) {
  const std::filesystem::path folder =
      ::testing::TempDir() + fmt::format("untax-Some-Model-{}", getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "config.json") << valid().dump();
  const model_config model = load_model(folder);
  EXPECT_EQ(model.hidden, parse(valid()).hidden);
  EXPECT_EQ(model.name, folder.filename().string());
  std::filesystem::remove_all(folder);
}

TEST(model_files, llama) {
  const model_config model = load_model(model_file("llama-3.2-1b"));
  EXPECT_EQ(model.architecture, "LlamaForCausalLM");
  EXPECT_EQ(model.model_type, "llama");
  EXPECT_EQ(model.hidden, 2048);
  EXPECT_EQ(model.intermediate, 8192);
  EXPECT_EQ(model.layers, 16);
  EXPECT_EQ(model.heads, 32);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(model.vocab, 128256);
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_FALSE(model.moe);
  EXPECT_FALSE(model.latent);
  EXPECT_EQ(model.dense_layers(), 16);
}

TEST(model_files, head_dim_is_derived_or_given) {
  EXPECT_EQ(load_model(model_file("llama-3.1-70b")).head_dim, 128);
  // 2880 / 64 is not a whole number: only the given 64 is right.
  const model_config oss = load_model(model_file("gpt-oss-120b"));
  EXPECT_EQ(oss.hidden, 2880);
  EXPECT_EQ(oss.head_dim, 64);
}

TEST(model_files, experts) {
  const model_config mixtral = load_model(model_file("mixtral-8x7b"));
  ASSERT_TRUE(mixtral.moe);
  EXPECT_EQ(mixtral.moe->experts, 8);
  EXPECT_EQ(mixtral.moe->experts_per_token, 2);
  EXPECT_EQ(mixtral.moe->intermediate, 14336);
  EXPECT_EQ(mixtral.moe->shared_intermediate, 0);
  EXPECT_EQ(mixtral.dense_layers(), 0);
}

TEST(model_files, deepseek) {
  const model_config model = load_model(model_file("deepseek-v3"));
  ASSERT_TRUE(model.moe);
  EXPECT_EQ(model.moe->experts, 256);
  EXPECT_EQ(model.moe->experts_per_token, 8);
  EXPECT_EQ(model.moe->intermediate, 2048);
  EXPECT_EQ(model.moe->shared_intermediate, 2048);
  EXPECT_EQ(model.moe->layers, 58);
  EXPECT_EQ(model.dense_layers(), 3);
  ASSERT_TRUE(model.latent);
  EXPECT_EQ(model.latent->q_rank, 1536);
  EXPECT_EQ(model.latent->kv_rank, 512);
  EXPECT_EQ(model.latent->v_head, 128);
  EXPECT_EQ(model.head_dim, 192);
}

TEST(model_fields, optional_ones_have_defaults) {
  nlohmann::json config = valid();
  config.erase("num_key_value_heads");
  config.erase("torch_dtype");
  config.erase("architectures");
  config["head_dim"] = nullptr;
  const model_config model = parse(config);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.head_dim, 32);
  EXPECT_EQ(model.type, dtype::bf16);
  ASSERT_EQ(model.notes.size(), 1U);
  EXPECT_NE(model.notes[0].find("bf16 is assumed"), std::string::npos);
}

TEST(model_fields, newer_and_other_spellings) {
  nlohmann::json config = valid();
  config["dtype"] = "float16";
  EXPECT_EQ(parse(config).type, dtype::f16) << "dtype goes before torch_dtype";
  config["dtype"] = "float32";
  EXPECT_EQ(parse(config).type, dtype::f32);
  config["model_type"] = "gpt_neox";
  EXPECT_FALSE(parse(config).gated_mlp);
  config["quantization_config"] = {{"quant_method", "fp8"}};
  EXPECT_NE(parse(config).notes.at(0).find("quantised"), std::string::npos);
}

TEST(model_fields, text_part_of_a_larger_model) {
  const nlohmann::json outer = {{"architectures", {"ForEyesAndEars"}}, {"text_config", valid()}};
  EXPECT_EQ(parse(outer).hidden, 256);
  EXPECT_EQ(parse(outer).architecture, "LlamaForCausalLM");
  nlohmann::json broken = outer;
  broken["text_config"]["vocab_size"] = -1;
  EXPECT_NE(refusal(broken).find("text_config.vocab_size is -1"), std::string::npos)
      << refusal(broken);
}

TEST(model_fields, experts_in_every_second_layer) {
  nlohmann::json config = valid();
  config.update({{"num_experts", 16},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 128},
                 {"shared_expert_intermediate_size", 384},
                 {"decoder_sparse_step", 2}});
  model_config model = parse(config);
  EXPECT_EQ(model.moe->layers, 2);
  EXPECT_EQ(model.moe->shared_intermediate, 384);
  config["mlp_only_layers"] = {3};
  EXPECT_EQ(parse(config).dense_layers(), 3);
  config["num_experts"] = 0;
  EXPECT_FALSE(parse(config).moe);
}

TEST(model_names, the_folder_names_a_model_without_a_name) {
  EXPECT_EQ(parse_model(valid().dump(), "a/Some-Model-7B/config.json").name, "Some-Model-7B");
  EXPECT_EQ(parse_model(valid().dump(), "a/llama-3.1-8b.json").name, "llama-3.1-8b");
}

TEST(model_errors, name_file_field_value_and_valid_values) {
  EXPECT_EQ(refusal_with("hidden_size", -3),
            "some/model.json: hidden_size is -3; should be a whole number from 1 to 4194304");
  nlohmann::json config = valid();
  config.erase("num_hidden_layers");
  EXPECT_EQ(
      refusal(config),
      "some/model.json: num_hidden_layers is missing; should be a whole number from 1 to 16384");
  EXPECT_EQ(refusal_with("torch_dtype", "float64"),
            "some/model.json: torch_dtype is \"float64\"; should be bfloat16, float16 or float32");
  EXPECT_EQ(refusal_with("num_key_value_heads", 3),
            "some/model.json: num_key_value_heads is 3; should divide num_attention_heads (8)");
}

TEST(model_errors, absurd_values) {
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "vocab_size", "num_key_value_heads", "head_dim"}) {
    for (const nlohmann::json& value :
         {nlohmann::json(0), nlohmann::json(-1), nlohmann::json(2.5), nlohmann::json(256.0),
          nlohmann::json("256"), nlohmann::json(true), nlohmann::json::array({1}),
          nlohmann::json::object(), nlohmann::json(INT64_MAX), nlohmann::json(INT64_MIN),
          nlohmann::json(UINT64_MAX), nlohmann::json(1e300)}) {
      const std::string text = refusal_with(key, value);
      EXPECT_NE(text.find(std::string("model.json: ") + key + " is "), std::string::npos)
          << key << " " << value << text;
    }
  }
  EXPECT_NE(refusal_with("hidden_size", 255).find("give head_dim"), std::string::npos);
  EXPECT_NE(refusal_with("architectures", "x").find("list of texts"), std::string::npos);
  EXPECT_NE(refusal_with("model_type", 7).find("should be a text"), std::string::npos);
  EXPECT_NE(refusal_with("interleave_moe_layer_step", 2).find("layout of experts"),
            std::string::npos);
}

TEST(model_errors, lists_and_objects_are_shown_by_their_type) {
  EXPECT_EQ(refusal_with("hidden_size", {1, 2}),
            "some/model.json: hidden_size is a list; should be a whole number from 1 to 4194304");
  EXPECT_EQ(refusal_with("torch_dtype", {{"a", 1}}),
            "some/model.json: torch_dtype is an object; should be a text");
}

// A recursive walk over the value would need a stack frame for every level.
TEST(model_errors, nested_deeply) {
  constexpr int depth = 100'000;
  std::string list(depth, '[');
  list.append(depth, ']');
  std::string object;
  for (int i = 0; i < depth; ++i) object += R"({"a":)";
  object += "1";
  object.append(depth, '}');
  std::vector<std::string> keys = {"text_config", "some_other"};
  const nlohmann::json fields = valid();
  for (const auto& [key, value] : fields.items()) keys.push_back(key);
  for (const char* key :
       {"num_key_value_heads", "head_dim", "dtype", "num_experts", "num_experts_per_tok",
        "mlp_only_layers", "kv_lora_rank", "quantization_config"}) {
    keys.emplace_back(key);
  }
  for (const std::string& nested : {list, object}) {
    for (const std::string& key : keys) {
      for (const bool inside : {false, true}) {
        nlohmann::json config = valid();
        if (key == "num_experts_per_tok" || key == "mlp_only_layers") config["num_experts"] = 4;
        config[key] = "here";
        std::string text = config.dump();
        text.replace(text.find("\"here\""), 6, nested);
        if (inside) text = R"({"text_config": )" + text + R"(, "dtype": )" + nested + "}";
        const std::string refused = error_text([&] { (void)parse_model(text, "m.json"); });
        EXPECT_LT(refused.size(), 200U);
        EXPECT_TRUE(refused.empty() || refused.rfind("m.json:", 0) == 0) << key << refused;
      }
    }
    const std::string refused = error_text([&] { (void)parse_model(nested, "m.json"); });
    EXPECT_EQ(refused.rfind("m.json:", 0), 0U) << refused;
  }
}

TEST(model_errors, families_that_are_not_known) {
  for (const char* type : {"bert", "gpt2", "opt", "t5", "falcon", "mamba", "llama5", ""}) {
    EXPECT_EQ(refusal({{"model_type", type}}),
              fmt::format("some/model.json: model_type is \"{}\"; untax does not know it by name, "
                          "nor by structure: hidden_size, num_hidden_layers, num_attention_heads "
                          "and intermediate_size are missing",
                          type));
    nlohmann::json without = valid();
    without["model_type"] = type;
    without.erase("num_attention_heads");
    EXPECT_NE(refusal(without).find("by structure: num_attention_heads is missing"),
              std::string::npos)
        << refusal(without);
    // Its fields are those of a decoder.
    EXPECT_EQ(refusal_with("model_type", type), "");
    nlohmann::json whole = valid();
    whole["model_type"] = type;
    EXPECT_NE(parse(whole).notes.at(0).find("is not known by name"), std::string::npos);
    EXPECT_TRUE(parse(whole).gated_mlp);
    whole["hidden_act"] = "gelu_new";
    EXPECT_FALSE(parse(whole).gated_mlp);
    // They are, but there is one that says otherwise.
    whole["state_size"] = 16;
    EXPECT_NE(refusal(whole).find("its state_size belongs to layers"), std::string::npos);
  }
  nlohmann::json config = valid();
  config.erase("model_type");
  EXPECT_NE(parse(config).notes.at(0).find("no model_type; layers as those of llama"),
            std::string::npos);
}

TEST(model_fields, fields_needed_only_by_a_note_are_optional) {
  nlohmann::json config = valid();
  config.erase("vocab_size");
  EXPECT_EQ(parse(config).vocab, 0);
  EXPECT_NE(layer_notes(parse(config), 2, 0).back().find("projection to vocabulary entries"),
            std::string::npos);
  // All layers have experts, so neither an MLP nor the number of visited experts is required.
  config.update({{"num_experts", 16}, {"moe_intermediate_size", 128}});
  config.erase("intermediate_size");
  EXPECT_EQ(parse(config).dense_layers(), 0);
  EXPECT_EQ(parse(config).intermediate, 0);
  EXPECT_NE(layer_notes(parse(config), 2, 0).at(0).find("visits some of 16"), std::string::npos);
  config["decoder_sparse_step"] = 2;
  EXPECT_NE(refusal(config).find("intermediate_size is missing"), std::string::npos);
  config = {{"n_shared_experts", 1}, {"num_experts", 4}};
  config.update(valid());
  config.erase("intermediate_size");
  EXPECT_NE(refusal(config).find("moe_intermediate_size is missing"), std::string::npos);
}

TEST(model_errors, not_json) {
  const auto text_of = [](const char* text) {
    return error_text([&] { (void)parse_model(text, "m.json"); });
  };
  EXPECT_EQ(
      text_of("{\n  \"hidden_size\": 12,\n  oops\n}").rfind("m.json:3:3: this is not JSON", 0), 0U)
      << text_of("{\n  \"hidden_size\": 12,\n  oops\n}");
  EXPECT_EQ(text_of("").rfind("m.json:1:1: this is not JSON", 0), 0U) << text_of("");
  EXPECT_NE(text_of(R"({"hidden_size": 1e999})").find("hidden_size is Infinity; should be"),
            std::string::npos);
  EXPECT_NE(text_of("[1, 2]").find("is an array, not an object"), std::string::npos);
  EXPECT_NE(text_of("3").find("is a number, not an object"), std::string::npos);
}

TEST(model_errors, unreadable_files) {
  const auto text_of = [](const char* file) { return error_text([&] { (void)load_model(file); }); };
  EXPECT_NE(
      text_of("/nowhere/model.json").find("/nowhere/model.json: cannot be opened (No such file"),
      std::string::npos);
  EXPECT_NE(text_of("/proc").find("is a folder without a config.json"), std::string::npos);
  EXPECT_NE(text_of("/dev/zero").find("is a device, not a regular file; give the config.json"),
            std::string::npos);
}

// A damaged file parses or is refused with an error of untax.
TEST(model_errors, damaged_files) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::ifstream stream(model_file("deepseek-v3"));
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  ASSERT_FALSE(whole.empty());
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (unsigned hits = random() % 4 + 1; hits > 0; --hits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
        default:
          text[at] = "0123456789-.e\"{}[],:"[random() % 20];
          break;
      }
      if (text.empty()) text = "{";
    }
    const std::string refused = error_text([&] { (void)parse_model(text, "damaged.json"); });
    if (!refused.empty()) {
      ASSERT_EQ(refused.rfind("damaged.json:", 0), 0U) << refused;
    }
  }
}

}  // namespace
}  // namespace untax::test
