// A model through the C ABI: the results are those of the C++ class, and wrong calls are refused.
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <untax/untax.h>
#include <untax/decoder/decoder.hpp>
#include <untax/world/launch.hpp>

#include "tests/temporary_file.hpp"

namespace {

constexpr const char* config = R"({"model_type": "llama", "torch_dtype": "float32",
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 61, "max_position_embeddings": 64})";

/// A handle of a decoder in a world of one rank, with room for 2 sequences.
class decoder_handle : public testing::Test {
 protected:
  decoder_handle() {
    std::ofstream(file_.path()) << config;
    options_.size = sizeof options_;
    options_.sequences = 2;
    options_.tokens = 16;
    options_.page_size = 4;
    options_.logits = 1;
    EXPECT_EQ(untax_world_threads(1, nullptr, &world_), untax_ok);
    EXPECT_EQ(untax_decoder_random(world_, file_.path().c_str(), 5, &options_, &decoder_), untax_ok)
        << untax_last_error().text;
  }
  ~decoder_handle() override {
    EXPECT_EQ(untax_decoder_destroy(decoder_), untax_ok);
    EXPECT_EQ(untax_world_destroy(world_), untax_ok);
  }
  static void refused(std::int32_t status, std::int32_t right, const char* text) {
    EXPECT_EQ(status, right);
    EXPECT_NE(std::string(untax_last_error().text).find(text), std::string::npos)
        << untax_last_error().text;
  }

  untax_test::temporary_file file_;
  untax_decoder_options options_{};
  untax_world* world_ = nullptr;
  untax_decoder* decoder_ = nullptr;
};

TEST_F(decoder_handle, results_are_those_of_the_class) {
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5};
  std::int32_t sequences[2] = {-1, -1};
  ASSERT_EQ(untax_decoder_add(decoder_, &sequences[0]), untax_ok);
  const std::int64_t counts[] = {5};
  ASSERT_EQ(untax_decoder_prefill(decoder_, sequences, counts, 1, tokens.data(), nullptr),
            untax_ok);
  ASSERT_EQ(untax_decoder_fork(decoder_, sequences[0], nullptr, &sequences[1]), untax_ok);
  const std::int32_t next[] = {6, 7};
  ASSERT_EQ(untax_decoder_stage(decoder_, sequences, 2, next, nullptr), untax_ok);
  ASSERT_EQ(untax_decoder_step(decoder_, nullptr), untax_ok);
  ASSERT_EQ(untax_decoder_stage(decoder_, sequences, 2, nullptr, nullptr), untax_ok);
  ASSERT_EQ(untax_decoder_step(decoder_, nullptr), untax_ok);
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  ASSERT_EQ(untax_decoder_shape(decoder_, &rows, &vocabulary), untax_ok);
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(vocabulary, 61);
  std::int64_t length = 0;
  ASSERT_EQ(untax_decoder_length(decoder_, sequences[1], &length), untax_ok);
  EXPECT_EQ(length, 7);
  std::vector<std::int32_t> results(2);
  ASSERT_EQ(untax_decoder_read_tokens(decoder_, results.data(), 2, nullptr), untax_ok);
  std::vector<float> logits(122);
  ASSERT_EQ(untax_decoder_read_logits(decoder_, logits.data(), 122, nullptr), untax_ok);
  ASSERT_EQ(untax_decoder_remove(decoder_, sequences[1]), untax_ok);

  untax::run_threads(1, [&](untax::world& w) {
    auto model =
        untax::decoder::random(w, untax::parse_decoder_config(config, "config"), 5,
                               {.sequences = 2, .tokens = 16, .page_size = 4, .logits = true});
    const int a = model.add();
    model.prefill(std::vector<untax::decoder::prompt>{{a, tokens}});
    const int b = model.fork(a);
    model.decode(std::vector{a, b}, next);
    model.decode(std::vector{a, b});
    EXPECT_EQ(model.read_tokens(), results);
    EXPECT_EQ(model.read_logits(), logits);
  });
}

untax_const_matrix given(const untax::const_matrix& m) {
  return {m.data, m.rows, m.cols, m.stride, static_cast<std::int32_t>(m.type)};
}

TEST(decoder_weights, a_decoder_on_the_weights_of_the_class_has_its_results) {
  const auto read = untax::parse_decoder_config(config, "config");
  untax::run_threads(1, [&](untax::world& w) {
    auto model = untax::decoder::random(w, read, 5, {.sequences = 2, .tokens = 16});
    const int sequence = model.add();
    const std::vector<std::int32_t> prompt{1, 2, 3};
    model.prefill(std::vector<untax::decoder::prompt>{{sequence, prompt}});

    const untax::decoder_weights& own = model.weights();
    std::vector<std::vector<untax_const_matrix>> matrices;
    std::vector<untax_decoder_layer> layers;
    for (const untax::decoder_layer_weights& l : own.layers)
      matrices.push_back({given(l.qkv), given(l.output), given(l.gate_up), given(l.down)});
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      untax_decoder_layer layer{};
      layer.size = sizeof layer;
      layer.qkv = &matrices[i][0];
      layer.output = &matrices[i][1];
      layer.gate_up = &matrices[i][2];
      layer.down = &matrices[i][3];
      layer.input_norm = own.layers[i].input_norm;
      layer.mlp_norm = own.layers[i].mlp_norm;
      layers.push_back(layer);
    }
    const untax_const_matrix embedding = given(own.embedding);
    const untax_const_matrix head = given(own.head);
    untax_decoder_weights weights{sizeof weights, &embedding,
                                  &head,          own.final_norm,
                                  layers.data(),  static_cast<std::int64_t>(layers.size())};
    untax_world* world = nullptr;
    ASSERT_EQ(untax_world_threads(1, nullptr, &world), untax_ok);
    untax_decoder_options options{};
    options.size = sizeof options;
    options.sequences = 2;
    options.tokens = 16;
    untax_decoder* other = nullptr;
    ASSERT_EQ(untax_decoder_create(world, config, &weights, &options, &other), untax_ok)
        << untax_last_error().text;
    std::int32_t same = 0;
    const std::int64_t count = 3;
    ASSERT_EQ(untax_decoder_add(other, &same), untax_ok);
    ASSERT_EQ(untax_decoder_prefill(other, &same, &count, 1, prompt.data(), nullptr), untax_ok);
    std::int32_t* tokens = nullptr;
    const float* logits = nullptr;
    ASSERT_EQ(untax_decoder_results(other, &tokens, &logits), untax_ok);
    EXPECT_EQ(*tokens, model.read_tokens().front());
    EXPECT_EQ(logits, nullptr);

    // A token that is written in place of a result is the next one of a step.
    *tokens = 7;
    ASSERT_EQ(untax_decoder_stage(other, &same, 1, nullptr, nullptr), untax_ok);
    ASSERT_EQ(untax_decoder_step(other, nullptr), untax_ok);
    model.decode(std::vector{sequence}, std::vector<std::int32_t>{7});
    EXPECT_EQ(*tokens, model.read_tokens().front());
    ASSERT_EQ(untax_decoder_destroy(other), untax_ok);

    layers.back().mlp_norm = nullptr;
    EXPECT_EQ(untax_decoder_create(world, config, &weights, &options, &other),
              untax_invalid_argument);
    EXPECT_NE(std::string(untax_last_error().text).find("mlp_norm is null"), std::string::npos);
    layers.back().mlp_norm = own.final_norm;
    --matrices.back()[3].rows;
    EXPECT_EQ(untax_decoder_create(world, config, &weights, &options, &other),
              untax_invalid_argument);
    EXPECT_NE(std::string(untax_last_error().text).find("down is fp32 [31, 48]"), std::string::npos)
        << untax_last_error().text;
    ASSERT_EQ(untax_world_destroy(world), untax_ok);
  });
}

TEST_F(decoder_handle, wrong_calls_are_refused) {
  std::int32_t sequence = 0;
  ASSERT_EQ(untax_decoder_add(decoder_, &sequence), untax_ok);
  const std::int32_t token = 61;
  const std::int64_t single = 1;
  const std::int64_t negative = -1;
  refused(untax_decoder_prefill(decoder_, &sequence, &single, 1, &token, nullptr),
          untax_invalid_argument, "token 61");
  refused(untax_decoder_prefill(decoder_, &sequence, &negative, 1, &token, nullptr),
          untax_invalid_argument, "-1 of tokens");
  refused(untax_decoder_prefill(decoder_, nullptr, &single, 1, &token, nullptr),
          untax_invalid_argument, "sequences");
  refused(untax_decoder_stage(decoder_, &sequence, 1, nullptr, nullptr), untax_invalid_argument,
          "run before");
  refused(untax_decoder_remove(decoder_, 1), untax_invalid_argument, "no sequence 1");
  refused(untax_decoder_read_tokens(decoder_, &sequence, 1, nullptr), untax_invalid_argument,
          "there are 0");
  refused(untax_decoder_add(nullptr, &sequence), untax_invalid_argument, "decoder");
  refused(untax_decoder_load(world_, "/", &options_, &decoder_), untax_invalid_argument,
          "config.json");
  refused(untax_world_destroy(world_), untax_invalid_argument, "destroy or drop");
}

TEST_F(decoder_handle, a_dropped_one_ends_with_its_world) {
  ASSERT_EQ(untax_decoder_drop(decoder_), untax_ok);
  decoder_ = nullptr;
}

}  // namespace
