// Whole models on GPUs: logits beside those of the host with the same weights, eagerly, on streams
// and as a graph of a step that is replayed.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/decoder/decoder.hpp>
#include <untax/world/launch.hpp>

#include "engines/bulk/communicator.hpp"
#include "engines/bulk/library_gemm.hpp"
#include "gpus.hpp"
#include "tests/decoder/invariance.hpp"

namespace {

using namespace gpu_test;
using untax::decoder;
using untax::decoder_config;
using untax::world;

using tokens = std::vector<std::int32_t>;

constexpr untax::decoder_options capacities{
    .sequences = 3, .tokens = 96, .page_size = 16, .prompt_tokens = 128, .logits = true};
constexpr int steps = 5;

decoder_config model(const std::string& family, const std::string& more) {
  return untax::parse_decoder_config(
      fmt::format(R"({{"model_type": "{}", "torch_dtype": "bfloat16", "hidden_size": 512,
        "intermediate_size": 1024, "num_hidden_layers": 3, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000,
        "max_position_embeddings": 128{}}})",
                  family, more),
      "config.json");
}

/// The logits of two prompts, of a third in two parts, and of some steps of all with given tokens.
std::vector<std::vector<float>> logits_of(world& w, const decoder_config& config, bool in_graph,
                                          const untax::decoder_options& options = capacities) {
  decoder d = decoder::random(w, config, 11, options);
  std::vector<tokens> prompts(3);
  for (std::int32_t i = 0; i < 70; ++i) prompts[0].push_back(i * 37 % 1000);
  for (std::int32_t i = 0; i < 9; ++i) prompts[1].push_back(i * 101 % 1000);
  for (std::int32_t i = 0; i < 40; ++i) prompts[2].push_back(i * 53 % 1000);
  const std::vector<int> sequences{d.add(), d.add(), d.add()};
  std::vector<std::vector<float>> results;
  d.prefill(std::vector<decoder::prompt>{{sequences[0], prompts[0]}, {sequences[1], prompts[1]}});
  results.push_back(d.read_logits());
  const std::span<const std::int32_t> third(prompts[2]);
  d.prefill(std::vector<decoder::prompt>{{sequences[2], third.first(25)}});
  d.prefill(std::vector<decoder::prompt>{{sequences[2], third.subspan(25)}});
  results.push_back(d.read_logits());
  const auto next = [](int step) { return tokens{step, 999 - step, 500 + step}; };
  if (!in_graph) {
    for (int step = 0; step < steps; ++step) {
      d.decode(sequences, next(step));
      results.push_back(d.read_logits());
    }
    return results;
  }
  const stream s;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  for (int step = 0; step < steps; ++step) {
    d.stage(sequences, next(step), s.get());
    if (replay == nullptr) {
      ok(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeThreadLocal));
      d.step(s.get());
      ok(cudaStreamEndCapture(s.get(), &graph));
      ok(cudaGraphInstantiate(&replay, graph, 0));
      ok(cudaGraphDestroy(graph));
    }
    ok(cudaGraphLaunch(replay, s.get()));
    results.push_back(d.read_logits(s.get()));
  }
  ok(cudaGraphExecDestroy(replay));
  return results;
}

/// The relative error of `a` in the Frobenius norm.
double deviation(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  double norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double apart = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    squares += apart * apart;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(squares / norm);
}

void expect_right(const decoder_config& config, bool in_graph,
                  const untax::decoder_options& options = capacities) {
  std::vector<std::vector<float>> right;
  untax::run_threads(1, [&](world& w) { right = logits_of(w, config, false); });
  for (int ranks = 1; ranks <= std::min(gpus(), 4); ++ranks) {
    SCOPED_TRACE(fmt::format("{} on {} ranks", config.family, ranks));
    untax::run_gpus(
        ranks,
        [&](world& w) {
          const auto results = logits_of(w, config, in_graph, options);
          ASSERT_EQ(results.size(), right.size());
          for (std::size_t i = 0; i < right.size(); ++i) {
            ASSERT_EQ(results[i].size(), right[i].size());
            EXPECT_LE(deviation(results[i], right[i]), 2e-2) << "run " << i;
          }
        },
        gpu_world());
  }
}

TEST(gpu_decoder, logits_are_those_of_the_host) {
  NEEDS_GPUS(1);
  expect_right(model("llama", ""), false);
  expect_right(model("qwen2", R"(, "tie_word_embeddings": true)"), false);
  expect_right(model("qwen3", R"(, "num_key_value_heads": 1)"), false);
  expect_right(model("mistral", R"(, "sliding_window": 24)"), false);
  expect_right(model("gemma2", R"(, "query_pre_attn_scalar": 64, "attn_logit_softcapping": 5.0)"),
               false);
  expect_right(model("gemma3_text", R"(, "query_pre_attn_scalar": 64)"), false);
}

// Steps of three sequences are one kernel, for the families that it has.
TEST(gpu_decoder, steps_of_operators_have_the_logits_of_the_host) {
  NEEDS_GPUS(1);
  untax::decoder_options options = capacities;
  options.one_kernel = false;
  expect_right(model("llama", ""), false, options);
  expect_right(model("qwen3", R"(, "num_key_value_heads": 1)"), false, options);
}

TEST(gpu_decoder, a_kernel_of_all_layers_has_the_logits_of_the_host) {
  NEEDS_GPUS(1);
  expect_right(model("llama", R"(, "head_dim": 128, "num_attention_heads": 16)"), false);
  expect_right(model("qwen2", R"(, "head_dim": 128, "use_sliding_window": true,
                                   "sliding_window": 24, "max_window_layers": 1)"),
               false);
  expect_right(model("qwen3", R"(, "head_dim": 128)"), false);
}

/// A model of sizes at random that a kernel of all layers has, split over up to `ranks` ranks.
decoder_config random_model(std::mt19937_64& random, int ranks) {
  const auto one_of = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const std::int64_t kv_heads = ranks * one_of(1, 2);
  return untax::parse_decoder_config(
      fmt::format(R"({{"model_type": "{}", "torch_dtype": "bfloat16", "hidden_size": {},
        "intermediate_size": {}, "num_hidden_layers": {}, "num_attention_heads": {},
        "num_key_value_heads": {}, "head_dim": {}, "vocab_size": 512,
        "max_position_embeddings": 512}})",
                  one_of(0, 1) == 0 ? "llama" : "qwen3", 64 * one_of(2, 24),
                  64 * ranks * one_of(1, 12), one_of(1, 4), kv_heads * one_of(1, 8), kv_heads,
                  64 * one_of(1, 2)),
      "config.json");
}

/// The logits of steps of sequences whose prompts have lengths at random, the same for each seed.
std::vector<std::vector<float>> step_logits(world& w, const decoder_config& config,
                                            std::uint64_t seed, bool one_kernel) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const int count = one_of(1, 4);
  decoder d = decoder::random(w, config, seed,
                              {.sequences = count,
                               .tokens = 512,
                               .page_size = 8 << one_of(0, 4),
                               .prompt_tokens = 512,
                               .logits = true,
                               .one_kernel = one_kernel});
  std::vector<int> sequences;
  for (int i = 0; i < count; ++i) {
    sequences.push_back(d.add());
    tokens prompt(static_cast<std::size_t>(one_of(1, 480)));
    for (std::int32_t& token : prompt) token = one_of(0, 499);
    d.prefill(std::vector<decoder::prompt>{{sequences.back(), prompt}});
  }
  std::vector<std::vector<float>> results;
  for (int step = 0; step < steps; ++step) {
    tokens next(sequences.size());
    for (std::int32_t& token : next) token = one_of(0, 499);
    d.decode(sequences, next);
    results.push_back(d.read_logits());
  }
  return results;
}

TEST(gpu_decoder, a_kernel_of_all_layers_has_the_logits_of_operators_at_random_sizes) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  for (int round = 0; round < 8; ++round) {
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(round));
    const int ranks = round % std::min(gpus(), 4) + 1;
    const decoder_config config = random_model(random, ranks);
    SCOPED_TRACE(fmt::format("seed {}, round {}: {} of {}, {} layers, {} and {} heads of {}, {}",
                             seed, round, config.family, config.hidden, config.layers, config.heads,
                             config.kv_heads, config.head_dim, config.intermediate));
    const std::uint64_t of_run = random();
    untax::run_gpus(
        ranks,
        [&](world& w) {
          const auto right = step_logits(w, config, of_run, false);
          const auto results = step_logits(w, config, of_run, true);
          for (std::size_t i = 0; i < right.size(); ++i)
            EXPECT_LE(deviation(results[i], right[i]), 2e-2) << "step " << i;
        },
        gpu_world());
  }
}

TEST(gpu_decoder, with_invariant_has_the_same_bits_alone_and_beside_others) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  const untax::decoder_options options{.sequences = 9, .tokens = 512, .page_size = 16};
  for (int round = 0; round < 5; ++round) {
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(round));
    const int ranks = round % std::min(gpus(), 4) + 1;
    const decoder_config config =
        round == 4 ? model("gemma2", R"(, "query_pre_attn_scalar": 64, "sliding_window": 100,
                                    "max_position_embeddings": 512)")
                   : random_model(random, ranks);
    untax::run_gpus(
        ranks, [&](world& w) { untax_test::invariance_trial(config, options, seed + 9).run(w); },
        gpu_world());
  }
}

TEST(gpu_decoder, an_invariant_model_has_the_logits_of_the_host) {
  NEEDS_GPUS(1);
  untax::decoder_options options = capacities;
  options.invariant = true;
  expect_right(model("llama", ""), false, options);
  expect_right(model("qwen3", R"(, "num_key_value_heads": 1)"), false, options);
}

TEST(gpu_decoder, a_graph_of_a_step_takes_what_was_staged) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  expect_right(model("llama", ""), true);
}

TEST(gpu_decoder, steps_without_a_stream_are_graphs_as_an_option) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  untax::decoder_options options = capacities;
  options.graphs = true;
  expect_right(model("qwen3", ""), false, options);
}

TEST(gpu_decoder, bulk_patterns_have_the_logits_of_the_host_eagerly_and_in_graphs) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  if (!untax::bulk::blas().there) GTEST_SKIP() << untax::bulk::blas().text;
  if (gpus() > 1 && !untax::bulk::nccl().there) GTEST_SKIP() << untax::bulk::nccl().text;
  untax::decoder_options options = capacities;
  for (const untax::pattern how :
       {untax::pattern::bulk_synchronous, untax::pattern::bulk_library}) {
    SCOPED_TRACE(untax::name_of(how));
    options.how = how;
    for (const bool graphs : {false, true}) {
      options.graphs = graphs;
      expect_right(model("llama", ""), false, options);
    }
    expect_right(model("gemma2", R"(, "query_pre_attn_scalar": 64)"), true, options);
  }
}

TEST(gpu_decoder, patterns_take_turns_with_the_weights_of_one_of_them) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  if (!untax::bulk::blas().there) GTEST_SKIP() << untax::bulk::blas().text;
  if (gpus() > 1 && !untax::bulk::nccl().there) GTEST_SKIP() << untax::bulk::nccl().text;
  const decoder_config config = model("llama", "");
  untax::run_gpus(
      std::min(gpus(), 4),
      [&](world& w) {
        untax::decoder_options options = capacities;
        options.graphs = true;
        decoder fused = decoder::random(w, config, 11, options);
        options.how = untax::pattern::bulk_library;
        decoder library(w, config, fused.weights(), options);
        const tokens prompt{1, 2, 3, 4, 5};
        const int sequence = fused.add();
        ASSERT_EQ(library.add(), sequence);
        for (decoder* d : {&fused, &library})
          d->prefill(std::vector<decoder::prompt>{{sequence, prompt}});
        for (int step = 0; step < steps; ++step) {
          for (decoder* d : {&fused, &library}) d->decode(std::vector{sequence}, tokens{step});
          EXPECT_LE(deviation(library.read_logits(), fused.read_logits()), 2e-2) << step;
        }
      },
      gpu_world());
}

}  // namespace
