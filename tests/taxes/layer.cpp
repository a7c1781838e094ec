#include <untax/taxes/layer.hpp>

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "sample.hpp"

namespace untax::test {
namespace {

constexpr const char* gather = "all_gather_gemm";
constexpr const char* scatter = "gemm_reduce_scatter";

std::vector<layer_operation> operations(const char* model, int ranks, int tokens) {
  return layer_operations(load_model(model_file(model)), ranks, tokens);
}

std::string notes(const char* model, int ranks) {
  std::string text;
  for (const std::string& note : layer_notes(load_model(model_file(model)), ranks))
    text += note + "\n";
  return text;
}

using list = std::vector<layer_operation>;

TEST(layer_operations, llama_1b_on_4_ranks) {
  // Of 32 heads and 8 key/value heads of 64, a rank has 8 and 2: (8 + 2 * 2) * 64 = 768.
  EXPECT_EQ(operations("llama-3.2-1b", 4, 64),
            (list{{"qkv", gather, 64, 768, 2048, 1, 16, dtype::bf16},
                  {"o", scatter, 64, 2048, 2048, 1, 16, dtype::bf16},
                  {"gate_up", gather, 64, 4096, 2048, 1, 16, dtype::bf16},
                  {"down", scatter, 64, 2048, 8192, 1, 16, dtype::bf16}}));
}

TEST(layer_operations, llama_70b_on_8_ranks) {
  // (8 + 2 * 1) * 128 = 1280; 2 * 28672 / 8 = 7168.
  EXPECT_EQ(operations("llama-3.1-70b", 8, 4096),
            (list{{"qkv", gather, 4096, 1280, 8192, 1, 80, dtype::bf16},
                  {"o", scatter, 4096, 8192, 8192, 1, 80, dtype::bf16},
                  {"gate_up", gather, 4096, 7168, 8192, 1, 80, dtype::bf16},
                  {"down", scatter, 4096, 8192, 28672, 1, 80, dtype::bf16}}));
}

TEST(layer_operations, of_ranks_that_all_have_all_tokens) {
  const model_config model = load_model(model_file("llama-3.1-70b"));
  constexpr auto layout = layer_layout::all_reduce;
  constexpr const char* reduce = "gemm_all_reduce";
  EXPECT_EQ(layer_operations(model, 8, 16, 0, layout),
            (list{{"o", reduce, 16, 8192, 8192, 1, 80, dtype::bf16},
                  {"down", reduce, 16, 8192, 28672, 1, 80, dtype::bf16}}));
  EXPECT_EQ(layer_operations(model, 8, 16, 1001, layout).front().name, "attention");
  EXPECT_NE(layer_notes(model, 8, 0, layout).front().find("All ranks have all tokens"),
            std::string::npos);
  EXPECT_EQ(notes("llama-3.1-70b", 8).find("All ranks have all tokens"), std::string::npos);
}

TEST(layer_operations, attention_of_decoding_is_between_qkv_and_o) {
  const auto operations = layer_operations(load_model(model_file("llama-3.1-70b")), 8, 16, 1001);
  ASSERT_EQ(operations.size(), 5U);
  EXPECT_EQ(operations[1].name, "attention");
  EXPECT_EQ(operations[1].operator_name, "flash_decode");
  EXPECT_EQ(operations[1].m, 16) << "sequences";
  EXPECT_EQ(operations[1].n, 64 * 128);
  EXPECT_EQ(operations[1].k, 126) << "keys of a rank, rounded up";
  EXPECT_EQ(operations[1].attention, (attention_heads{64, 8, 128})) << "every rank has all heads";
  EXPECT_EQ(operations[1].layers, 80);
  EXPECT_EQ(operations[2].name, "o");
  EXPECT_EQ(layer_operations(load_model(model_file("deepseek-v3")), 8, 16, 1001).size(), 6U)
      << "latent attention is another operator";
  const auto said = layer_notes(load_model(model_file("llama-3.1-70b")), 8, 1001);
  EXPECT_NE(said[said.size() - 2].find("a sequence of 1001 keys"), std::string::npos);
  EXPECT_EQ(said.back().find("the attention between"), std::string::npos);
  EXPECT_NE(error_text([] {
              (void)layer_operations(load_model(model_file("llama-3.1-70b")), 8, 16, -1);
            }).find("keys is -1"),
            std::string::npos);
}

TEST(layer_operations, key_value_heads_are_replicated_on_16_ranks) {
  // 4 heads and one of the 8 key/value heads, which two ranks have: (4 + 2) * 128.
  EXPECT_EQ(operations("llama-3.1-70b", 16, 1)[0].n, 768);
  EXPECT_NE(notes("llama-3.1-70b", 16).find("each is computed by 2 ranks"), std::string::npos);
  EXPECT_EQ(notes("llama-3.1-70b", 8).find("each is computed by"), std::string::npos);
}

TEST(layer_operations, deepseek_on_8_ranks) {
  // 1536 + 512 + 64 = 2112 replicated columns; 128 heads * 128; 2 * 18432 / 8 = 4608; 2 * 2048 / 8
  // = 512.
  EXPECT_EQ(operations("deepseek-v3", 8, 16),
            (list{{"q_a_kv_a", gather, 16, 2112, 7168, 1, 61, dtype::bf16},
                  {"o", scatter, 16, 7168, 16384, 1, 61, dtype::bf16},
                  {"gate_up", gather, 16, 4608, 7168, 1, 3, dtype::bf16},
                  {"down", scatter, 16, 7168, 18432, 1, 3, dtype::bf16},
                  {"shared_gate_up", gather, 16, 512, 7168, 1, 58, dtype::bf16},
                  {"shared_down", scatter, 16, 7168, 2048, 1, 58, dtype::bf16}}));
  const std::string text = notes("deepseek-v3", 8);
  EXPECT_NE(text.find("q_b and kv_b"), std::string::npos);
  EXPECT_NE(text.find("In 58 of 61 layers each token visits 8 of 256 routed experts"),
            std::string::npos);
  EXPECT_NE(text.find("shared expert"), std::string::npos);
}

TEST(layer_operations, latent_attention_without_q_rank) {
  model_config model = load_model(model_file("deepseek-v3"));
  model.latent->q_rank = 0;
  // 16 heads of 192 at each rank and the replicated 576 columns of kv_a.
  const layer_operation first = layer_operations(model, 8, 16)[0];
  EXPECT_EQ(first.name, "q_kv_a");
  EXPECT_EQ(first.n, 16 * 192 + 576);
}

TEST(layer_operations, experts_leave_attention) {
  EXPECT_EQ(operations("gpt-oss-120b", 4, 7),
            (list{{"qkv", gather, 7, 1280, 2880, 1, 36, dtype::bf16},
                  {"o", scatter, 7, 2880, 4096, 1, 36, dtype::bf16}}));
  EXPECT_EQ(operations("mixtral-8x7b", 2, 7).size(), 2U);
  EXPECT_NE(notes("mixtral-8x7b", 2).find("not measured"), std::string::npos);
}

TEST(layer_operations, width_that_the_ranks_do_not_divide) {
  model_config model = load_model(model_file("qwen2.5-72b"));
  model.intermediate = 29569;
  const auto operations = layer_operations(model, 8, 64);
  EXPECT_EQ(operations[2].n, 2 * 3697);
  EXPECT_EQ(operations[3].k, 29569) << "the global reduction dimension";
  EXPECT_NE(layer_notes(model, 8)[0].find("do not divide"), std::string::npos);
}

TEST(layer_operations, mlp_without_gate) {
  model_config model = load_model(model_file("llama-3.1-8b"));
  model.gated_mlp = false;
  EXPECT_EQ(layer_operations(model, 4, 64)[2].name, "up");
  EXPECT_EQ(layer_operations(model, 4, 64)[2].n, 14336 / 4);
}

TEST(layer_operations, heads_that_the_ranks_cannot_share) {
  const std::string text = error_text([] { (void)operations("llama-3.2-1b", 3, 64); });
  EXPECT_EQ(text,
            "llama-3.2-1b: tensor_parallel is 3, which cannot share 32 attention heads and 8 "
            "key/value heads evenly; "
            "possible are 1, 2, 4, 8, 16, 32");
  for (const int ranks : {0, -1, 5, 64, 1 << 30}) {
    EXPECT_NE(error_text([&] { (void)operations("llama-3.2-1b", ranks, 64); }), "") << ranks;
  }
  for (const int tokens : {0, -1, (1 << 24) + 1}) {
    EXPECT_NE(error_text([&] { (void)operations("llama-3.2-1b", 4, tokens); }).find("tokens is"),
              std::string::npos);
  }
}

TEST(layer_operations, one_rank_has_everything) {
  EXPECT_EQ(operations("llama-3.2-1b", 1, 64)[0].n, (32 + 16) * 64);
  EXPECT_EQ(operations("llama-3.2-1b", 1, 64)[2].n, 2 * 8192);
}

// For any model and any number of ranks: refused, or all columns are there, in every layer.
TEST(layer_operations, nothing_is_lost_between_the_ranks) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    model_config model;
    model.name = "random";
    model.kv_heads = between(1, 12);
    model.heads = model.kv_heads * between(1, 8);
    model.head_dim = between(1, 200);
    model.hidden = between(1, 10000);
    model.intermediate = between(1, 30000);
    model.layers = between(1, 100);
    model.vocab = 10;
    const int ranks = between(1, 16);
    const bool fits =
        model.heads % ranks == 0 && (model.kv_heads % ranks == 0 || ranks % model.kv_heads == 0);
    std::vector<layer_operation> operations;
    const std::string refused =
        error_text([&] { operations = layer_operations(model, ranks, between(1, 500)); });
    ASSERT_EQ(refused.empty(), fits) << refused;
    if (!fits) continue;
    ++accepted;
    ASSERT_EQ(operations.size(), 4U);
    EXPECT_GE(operations[0].n * ranks, (model.heads + 2 * model.kv_heads) * model.head_dim);
    EXPECT_GE(operations[2].n * ranks, 2 * model.intermediate);
    EXPECT_LT((operations[2].n - 2) * ranks, 2 * model.intermediate);
    for (const layer_operation& operation : operations)
      EXPECT_EQ(operation.occurrences(), model.layers);
  }
  EXPECT_GT(accepted, 100);
}

TEST(layer_operations, same_problem_ignores_where_it_occurs) {
  layer_operation a{"a", gather, 1, 2, 3, 1, 4, dtype::f32};
  layer_operation b{"b", gather, 1, 2, 3, 2, 9, dtype::f32};
  EXPECT_TRUE(a.same_problem(b));
  b.k = 4;
  EXPECT_FALSE(a.same_problem(b));
  b = a;
  b.type = dtype::f16;
  EXPECT_FALSE(a.same_problem(b));
  b = a;
  b.operator_name = scatter;
  EXPECT_FALSE(a.same_problem(b));
}

}  // namespace
}  // namespace untax::test
