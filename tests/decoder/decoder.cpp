#include <untax/decoder/generate.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <untax/world/launch.hpp>

#include "decoder/random_weights.hpp"
#include "tests/decoder/invariance.hpp"
#include "tests/decoder/models.hpp"
#include "tests/decoder/reference.hpp"
#include "tests/errors.hpp"

using untax::decoder;
using untax::decoder_config;
using untax::decoder_options;
using untax::errc;
using untax::launch_mode;
using untax::pattern;
using untax::run_threads;
using untax::world;

namespace untax_test {
namespace {

using tokens = std::vector<std::int32_t>;

/// A decoder with random weights, and these for the reference.
struct test_decoder {
  test_decoder(world& w, const decoder_config& config, const decoder_options& options)
      : source(config, 7), model(decoder::random(w, config, 7, options)) {}

  untax::random_weights source;
  decoder model;
};

constexpr decoder_options small{.sequences = 3,
                                .tokens = 40,
                                .page_size = 4,
                                .pages = 24,
                                .prompt_tokens = 40,
                                .prompt_keys = 48,
                                .logits = true};

/// The logits of row `row` are those that the reference has after `sequence`.
void expect_logits(const decoder& model, std::int64_t row, const tokens& sequence,
                   const reference_decoder& reference) {
  const std::vector<double> right = reference.logits(sequence);
  const std::vector<float> values = model.read_logits();
  const auto begin = values.begin() + row * model.config().vocabulary;
  const std::vector<float> logits(begin, begin + model.config().vocabulary);
  double largest = 0;
  for (const double value : right) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < right.size(); ++i) {
    ASSERT_NEAR(logits[i], right[i], 2e-5 * largest) << "logit " << i;
  }
  const auto best = std::ranges::max_element(logits) - logits.begin();
  ASSERT_EQ(model.read_tokens()[static_cast<std::size_t>(row)], best);
}

/// Two prompts in one prefill, a third one in two parts, and steps of all: the logits of each are
/// those of the reference, whatever runs beside.
void expect_right(const nlohmann::json& fields, int ranks, const decoder_options& options = small) {
  SCOPED_TRACE(testing::Message() << fields.dump() << " on " << ranks << " ranks");
  const decoder_config config = parsed(fields);
  run_threads(ranks, [&](world& w) {
    test_decoder made(w, config, options);
    const reference_decoder reference(config, made.source);
    decoder& model = made.model;
    std::vector<tokens> sequences{{5, 17, 99, 3, 42}, {100, 0, 8}, {77, 12, 31, 64, 9, 2, 50}};
    const int a = model.add();
    const int b = model.add();
    const int c = model.add();
    model.prefill(std::vector<decoder::prompt>{{a, sequences[0]}, {b, sequences[1]}});
    expect_logits(model, 0, sequences[0], reference);
    expect_logits(model, 1, sequences[1], reference);
    tokens next = model.read_tokens();
    const std::span<const std::int32_t> third(sequences[2]);
    model.prefill(std::vector<decoder::prompt>{{c, third.first(3)}});
    model.prefill(std::vector<decoder::prompt>{{c, third.subspan(3)}});
    expect_logits(model, 0, sequences[2], reference);
    next.push_back(model.read_tokens().front());
    for (int step = 0; step < 4; ++step) {
      // Without tokens they are those of the step before.
      model.decode(std::vector{a, b, c}, step == 0 ? std::span(next) : std::span<std::int32_t>{});
      for (std::size_t i = 0; i < 3; ++i) {
        sequences[i].push_back(next[i]);
        expect_logits(model, static_cast<std::int64_t>(i), sequences[i], reference);
      }
      next = model.read_tokens();
    }
  });
}

TEST(decoder, llama_has_the_logits_of_the_reference_on_any_number_of_ranks) {
  for (int ranks = 1; ranks <= 4; ++ranks) expect_right(small_model("llama"), ranks);
}

TEST(decoder, every_family_has_the_logits_of_the_reference) {
  const nlohmann::json scaled = {{"rope_type", "llama3"},
                                 {"factor", 4.0},
                                 {"low_freq_factor", 1.0},
                                 {"high_freq_factor", 4.0},
                                 {"original_max_position_embeddings", 8}};
  expect_right(small_model("llama", {{"attention_bias", true},
                                     {"mlp_bias", true},
                                     {"rope_scaling", scaled},
                                     {"num_key_value_heads", 1}}),
               3);
  expect_right(small_model("mistral", {{"sliding_window", 40}}), 2);
  expect_right(small_model("mistral", {{"sliding_window", 5}}), 2);
  expect_right(small_model("qwen2", {{"tie_word_embeddings", true}}), 3);
  expect_right(small_model("qwen3", {{"num_key_value_heads", 2}}), 4);
  expect_right(small_model("phi3", {{"partial_rotary_factor", 0.5}}), 2);
  const nlohmann::json gemma = {{"hidden_act", nullptr},
                                {"query_pre_attn_scalar", 16},
                                {"sliding_window", 64},
                                {"final_logit_softcapping", 5.0}};
  nlohmann::json capped = gemma;
  capped["attn_logit_softcapping"] = 1.5;
  capped["sliding_window"] = 4;
  expect_right(small_model("gemma2", capped), 2);
  expect_right(small_model("gemma3_text", gemma), 3);
}

decoder_options small_with(pattern how, launch_mode launch) {
  decoder_options options = small;
  options.how = how;
  options.launch = launch;
  return options;
}

TEST(decoder, bulk_patterns_have_the_logits_of_the_reference) {
  const nlohmann::json gemma = small_model("gemma2", {{"hidden_act", nullptr},
                                                      {"query_pre_attn_scalar", 16},
                                                      {"sliding_window", 4},
                                                      {"attn_logit_softcapping", 1.5}});
  for (const pattern how : {pattern::bulk_synchronous, pattern::bulk_library}) {
    for (const launch_mode launch : {launch_mode::eager, launch_mode::graph}) {
      SCOPED_TRACE(untax::name_of(how));
      expect_right(small_model("llama"), 1, small_with(how, launch));
      expect_right(small_model("qwen3"), 3, small_with(how, launch));
      expect_right(gemma, 2, small_with(how, launch));
    }
  }
}

TEST(decoder, patterns_have_the_same_bits_in_fp32_with_the_weights_of_one_of_them) {
  const decoder_config config = parsed(small_model("llama"));
  run_threads(3, [&](world& w) {
    const test_decoder made(w, config, small);
    std::vector<std::vector<float>> logits;
    for (const pattern how :
         {pattern::automatic, pattern::bulk_synchronous, pattern::bulk_library}) {
      decoder model(w, config, made.model.weights(), small_with(how, launch_mode::graph));
      const tokens prompt{5, 17, 99, 3, 42};
      model.prefill(std::vector<decoder::prompt>{{model.add(), prompt}});
      model.decode(std::vector{0}, tokens{7});
      logits.push_back(model.read_logits());
    }
    EXPECT_EQ(logits[1], logits[0]);
    EXPECT_EQ(logits[2], logits[0]);
  });
}

TEST(decoder, decoders_in_turn_generate_what_each_generates_alone) {
  const decoder_config config = parsed(small_model("llama"));
  run_threads(2, [&](world& w) {
    test_decoder made(w, config, small);
    decoder library(w, config, made.model.weights(),
                    small_with(pattern::bulk_library, launch_mode::eager));
    const std::vector<tokens> prompts{{5, 17, 99, 3, 42}, {100, 0, 8}};
    const auto alone = untax::generate(made.model, prompts, 6);
    const auto both =
        untax::generate_in_turn(std::vector<decoder*>{&made.model, &library}, prompts, 6);
    ASSERT_EQ(both.size(), 2U);
    for (const untax::generation& one : both) {
      EXPECT_EQ(one.tokens, alone.tokens);
      EXPECT_GT(one.first_token_seconds, 0);
      EXPECT_GT(one.step_seconds, 0);
      EXPECT_GE(one.seconds, one.first_token_seconds + one.step_seconds);
    }
    EXPECT_EQ(made.model.add(), 0);  // no sequence is left
    const auto nothing = untax::generate_in_turn(std::vector<decoder*>{&library}, prompts, 0);
    EXPECT_EQ(nothing.front().tokens, std::vector<tokens>(2));
  });
}

TEST(decoder, with_invariant_has_the_same_bits_alone_and_beside_others) {
  decoder_options options = small;
  options.sequences = 5;
  options.pages = 0;
  options.prompt_keys = 0;
  const std::uint64_t seed = std::random_device{}();
  std::uint64_t round = 0;
  for (const char* family : {"llama", "gemma2", "mistral"}) {
    for (const char* type : {"float32", "bfloat16"}) {
      const decoder_config config =
          parsed(small_model(family, {{"torch_dtype", type}, {"sliding_window", 9}}));
      ++round;
      run_threads(static_cast<int>(round % 3) + 1,
                  [&](world& w) { invariance_trial(config, options, seed + round).run(w); });
    }
  }
}

TEST(decoder, long_prompts_with_a_soft_cap_take_several_runs_of_attention) {
  const decoder_config config = parsed(small_model(
      "gemma2",
      {{"hidden_act", nullptr}, {"query_pre_attn_scalar", 16}, {"attn_logit_softcapping", 1.5}}));
  decoder_options options = small;
  options.tokens = 100;
  options.pages = 0;
  options.prompt_tokens = 100;
  options.prompt_keys = 0;
  run_threads(2, [&](world& w) {
    test_decoder made(w, config, options);
    const reference_decoder reference(config, made.source);
    tokens prompt;
    for (std::int32_t i = 0; i < 70; ++i) prompt.push_back(i * 29 % 101);
    const int sequence = made.model.add();
    made.model.prefill(std::vector<decoder::prompt>{{sequence, prompt}});
    expect_logits(made.model, 0, prompt, reference);
  });
}

TEST(decoder, a_fork_goes_on_by_itself_and_pages_are_used_again) {
  const decoder_config config = parsed(small_model("llama"));
  run_threads(2, [&](world& w) {
    test_decoder made(w, config, small);
    const reference_decoder reference(config, made.source);
    decoder& model = made.model;
    for (int round = 0; round < 6; ++round) {
      const tokens prompt{1, 2, 3, 4, 5, static_cast<std::int32_t>(round)};
      const int a = model.add();
      model.prefill(std::vector<decoder::prompt>{{a, prompt}});
      const int b = model.fork(a);
      model.decode(std::vector{a, b}, tokens{10, 20});
      tokens left = prompt;
      tokens right = prompt;
      left.push_back(10);
      right.push_back(20);
      expect_logits(model, 0, left, reference);
      expect_logits(model, 1, right, reference);
      model.remove(a);
      model.decode(std::vector{b}, tokens{30});
      right.push_back(30);
      expect_logits(model, 0, right, reference);
      model.remove(b);
    }
  });
}

TEST(decoder, wrong_calls_are_refused_before_anything_is_written) {
  const decoder_config config = parsed(small_model("llama"));
  decoder_options few = small;
  few.pages = 2;
  run_threads(2, [&](world& w) {
    test_decoder made(w, config, few);
    const reference_decoder reference(config, made.source);
    decoder& model = made.model;
    const int a = model.add();
    const auto refuses = [&](const auto& call, errc code, const char* text) {
      expect_error(error_of(call), code, {text});
    };
    const auto prefill = [&](const tokens& t) {
      return [&model, a, t] { model.prefill(std::vector<decoder::prompt>{{a, t}}); };
    };
    refuses(prefill({101}), errc::invalid_argument, "token 101");
    refuses(prefill({-1}), errc::invalid_argument, "token -1");
    refuses(prefill({}), errc::invalid_argument, "without tokens");
    refuses(prefill(tokens(9, 1)), errc::out_of_memory, "full");
    refuses(prefill(tokens(41, 1)), errc::out_of_memory, "in parts");
    EXPECT_EQ(model.length(a), 0);
    const tokens prompt{1, 2, 3, 4, 5, 6, 7};
    prefill(prompt)();
    refuses([&] { model.decode(std::vector{a}, tokens{101}); }, errc::invalid_argument,
            "token 101");
    refuses([&] { model.decode(std::vector{a, a}, tokens{1, 1}); }, errc::invalid_argument, "once");
    refuses([&] { model.decode(std::vector{a + 1}, tokens{1}); }, errc::invalid_argument,
            "no sequence");
    refuses([&] { model.decode(std::vector<int>{}); }, errc::invalid_argument, "as many sequences");
    refuses([&] { model.fork(a); }, errc::out_of_memory, "full");
    tokens longer = prompt;
    longer.push_back(8);
    model.decode(std::vector{a}, tokens{8});
    expect_logits(model, 0, longer, reference);
    refuses([&] { model.decode(std::vector{a}, tokens{9}); }, errc::out_of_memory, "full");
  });
}

TEST(decoder, properties_without_operators_are_refused) {
  const auto refuses = [](const nlohmann::json& fields, const char* text) {
    const decoder_config config = parsed(fields);
    run_threads(1, [&](world& w) {
      expect_error(error_of([&] { test_decoder made(w, config, small); }), errc::unsupported,
                   {text});
    });
  };
  refuses(small_model("llama", {{"intermediate_size", 70}}), "intermediate_size");
  run_threads(1, [](world& w) {
    expect_error(error_of([&] {
                   test_decoder made(w, parsed(small_model("llama")),
                                     small_with(pattern::fused_sequential, launch_mode::graph));
                 }),
                 errc::unsupported, {"fused_sequential", "bulk_library"});
  });
}

}  // namespace
}  // namespace untax_test
