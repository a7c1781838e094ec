#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <untax/select/emit.hpp>
#include <untax/select/evaluation.hpp>
#include <untax/select/training.hpp>

#include "emitted.hpp"
#include "src/core/text_file.hpp"
#include "support.hpp"
#include "tests/slower_build.hpp"

namespace untax::select {
namespace {

using test::refusal;
using test::sample_csv;
using test::sample_schema;

table sample(std::uint64_t seed, int records = 400) {
  return read_csv(sample_csv(seed, records), "sample.csv", sample_schema());
}

/// The selector of emitted.hpp: a guard of each kind, and trees that reach all of them.
selector emitted_selector() {
  const selector trained = train(sample(1));
  schema what = trained.what();
  what.candidates[0].guard = "half <= 300";
  what.candidates[2].known_guard = "n <= 64 + half / 3";
  using node = decision_tree::node;
  const decision_tree gather({node{2, 10, 1, 2}, node{.choice = 0}, node{0, 200.5, 3, 4},
                              node{.choice = 0}, node{.choice = 1}});
  const decision_tree known({node{0, 100.25, 1, 2}, node{.choice = 2}, node{0, 1000, 3, 4},
                             node{.choice = 0}, node{.choice = 1}});
  return {what, known, trained.gathered_tree(), gather, 1};
}

TEST(selectors, are_compared_with_a_group_of_candidates) {
  const table records = sample(2);
  const judgement result = evaluate(train(sample(1)), records);
  for (const evaluation& e : result.ways) {
    if (e.way != "selector") continue;
    // All candidates together are the oracle.
    for (const speedup& gain : speedups_over("", result, records)) {
      if (gain.iterations != e.iterations) continue;
      EXPECT_NEAR(gain.mean * e.mean_ratio, 1, 1e-9);
      EXPECT_NEAR(gain.least * e.worst_ratio, 1, 1e-9);
      EXPECT_EQ(gain.lowest, e.worst);
    }
    // And one of them is what always takes it.
    for (const speedup& gain : speedups_over("plain", result, records)) {
      if (gain.iterations != e.iterations) continue;
      for (const evaluation& single : result.ways) {
        if (single.way == "always plain" && single.iterations == e.iterations &&
            single.failures == 0) {
          EXPECT_NEAR(gain.mean, single.mean_ratio / e.mean_ratio, 1e-9);
        }
      }
    }
  }
  EXPECT_NE(refusal([&] {
              (void)speedups_over("nothing", result, records);
            }).find("no candidate's name begins with nothing"),
            std::string::npos);
}

TEST(selectors, refuse_another_number_of_values_than_there_are_features) {
  const selector s = emitted_selector();
  const std::size_t known = s.features().given_known();
  const std::size_t feature_count = s.features().given();
  ASSERT_LT(known, feature_count);
  for (const std::size_t count : {known - 1, known + 1, feature_count - 1, feature_count + 1}) {
    const std::vector<double> values(count, 1000.0);
    const std::string wrong = std::to_string(count) + " values are given";
    if (count != known) {
      EXPECT_NE(refusal([&] { (void)s.by_known(values, 10); }).find(wrong), std::string::npos);
      EXPECT_NE(refusal([&] {
                  (void)s.choose(values, 10, [] { return std::vector<double>(); });
                }).find(wrong),
                std::string::npos);
    }
    if (count != feature_count) {
      EXPECT_NE(refusal([&] { (void)s.by_gathered(values, 10); }).find(wrong), std::string::npos);
    }
    if (count != known && count != feature_count) {
      EXPECT_NE(refusal([&] { (void)s.explain(values, 10); }).find(wrong), std::string::npos);
    }
  }
}

TEST(selectors, refuse_features_that_are_no_finite_numbers) {
  const selector s = train(sample(1));
  const double nan = std::nan("");
  const auto said = [&](double n, double longest, double iterations) {
    const std::vector<double> given = {n, longest};
    const std::string known = refusal([&] { (void)s.by_known({&n, 1}, iterations); });
    const std::string text = refusal([&] { (void)s.by_gathered(given, iterations); });
    EXPECT_EQ(refusal([&] { (void)s.explain(given, iterations); }).empty(), text.empty());
    EXPECT_TRUE(known.empty() || known == text) << known;
    return text;
  };
  EXPECT_EQ(said(1000, 5, 10), "");
  EXPECT_EQ(said(nan, 5, 10), "feature n is nan; it has to be a finite number");
  EXPECT_EQ(said(1000, -INFINITY, 10), "feature longest is -inf; it has to be a finite number");
  for (const double iterations : {nan, 0.0, -1.0, static_cast<double>(INFINITY)})
    EXPECT_NE(said(1000, 5, iterations).find("it has to be a number above 0"), std::string::npos);
  schema computed = sample_schema();
  computed.features[1].is = "longest / n";
  std::swap(computed.features[1], computed.features[2]);
  computed.features[2].gathered = true;
  const selector ratio(computed, s.known_tree(), decision_tree(), s.gather_tree(), 0);
  EXPECT_EQ(refusal([&] {
              (void)ratio.by_gathered(std::vector<double>{0, 0}, 1);
            }),
            "feature half is nan; it has to be a finite number");
}

/// Which candidate is quickest follows from `longest`, which has to be gathered, and from no
/// pattern of n. A tree that sees the records it is judged by knows each n by heart.
TEST(selectors, learn_the_value_of_gathering_from_records_that_trees_have_not_seen) {
  constexpr std::size_t singles = 150;
  constexpr int copies = 4;
  for (const std::uint64_t seed : {1, 2, 3}) {
    std::mt19937_64 random(seed);
    std::string text = "n,longest,t_plain,t_wide,t_padded\n";
    const auto add = [&](std::size_t n, bool plain) {
      text += std::to_string(n) + (plain ? ",20,1,2,50\n" : ",40,2,1,50\n");
    };
    for (std::size_t n = 1; n <= singles; ++n) add(n, random() % 2 == 1);
    for (std::size_t n = 1001; n <= 1100; ++n) {
      const bool plain = random() % 2 == 1;
      for (int i = 0; i < copies; ++i) add(n, plain);
    }
    schema what = sample_schema();
    what.iterations = {1};
    what.gathering = "0.05";
    what.candidates[2].setup = "0";
    const table records = read_csv(text, "copies.csv", what);
    training_options options;
    options.largest.leaves = 400;
    options.largest.depth = 30;
    options.largest.records = 1;
    const selector s = train(records, options);
    EXPECT_EQ(s.gathered_tree().leaves(), 2) << seed;
    EXPECT_LE(s.gather_tree().leaves(), 20) << seed;
    std::size_t gathers = 0;
    for (std::size_t i = 0; i < records.records(); ++i)
      gathers += s.gathers(records.features.row(i).first(1), 1) ? 1 : 0;
    EXPECT_GE(gathers, records.records() * 4 / 5) << seed;
  }
}

TEST(selectors, come_close_to_the_best_choice) {
  const judgement result = evaluate(train(sample(1, 2000)), sample(2, 2000));
  const auto way = [&](const std::string& name, double iterations) {
    for (const evaluation& e : result.ways) {
      if (e.way == name && e.iterations == iterations) return e;
    }
    ADD_FAILURE() << name;
    return evaluation{};
  };
  EXPECT_LT(way("gathered for free", 1).mean_ratio, 1.05);
  EXPECT_LT(way("selector", 1000).mean_ratio, 1.05);
  EXPECT_GT(way("always plain", 1).mean_ratio, 1.5);
  EXPECT_EQ(way("always padded", 1).failures > 0, true);
  for (const double iterations : {1.0, 1000.0}) {
    const double better =
        std::min(way("known", iterations).mean_ratio, way("gathered", iterations).mean_ratio);
    EXPECT_LE(way("selector", iterations).mean_ratio, better * 1.01);
    for (const char* name : {"known", "gathered", "selector"})
      EXPECT_EQ(way(name, iterations).failures, 0) << name;
  }
}

TEST(selectors, never_pass_a_guard) {
  const selector s = train(sample(1));
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> n(1, 1e5);
  std::uniform_real_distribution<double> longest(0, 50);
  for (int i = 0; i < 10000; ++i) {
    const std::vector<double> given = {n(random), longest(random)};
    for (const double iterations : {1.0, 1000.0}) {
      EXPECT_NE(s.by_known({given.data(), 1}, iterations), 2);
      if (given[1] > 8) {
        EXPECT_NE(s.by_gathered(given, iterations), 2);
      }
    }
  }
}

TEST(selectors, are_answered_by_a_known_guard_while_nothing_is_gathered) {
  schema s = sample_schema();
  s.candidates[2].known_guard = "n <= 8";
  const auto allowed = [&](std::vector<double> given) {
    const feature_set features(s);
    return features.allows(2, features.complete(given));
  };
  EXPECT_TRUE(allowed({8}));
  EXPECT_FALSE(allowed({9}));
  EXPECT_TRUE(allowed({9, 8}));
  EXPECT_FALSE(allowed({8, 9}));
  EXPECT_EQ(read_schema(to_json(s), "s.json").candidates[2].known_guard, "n <= 8");
  table records = sample(1);
  records.what = s;
  const std::string header = to_header(train(records), "made");
  EXPECT_NE(header.find("candidate::padded && !(n <= 8.0)"), std::string::npos);
  EXPECT_EQ(header.find("!false"), std::string::npos);
  s.candidates[2].known_guard = "longest <= 8";
  EXPECT_THROW(feature_set{s}, error);
}

TEST(selectors, gather_at_most_once_and_only_where_it_pays) {
  const selector s = train(sample(1));
  int gathered = 0;
  for (const double n : {10.0, 1000.0, 60000.0}) {
    for (const double iterations : {1.0, 1000.0}) {
      int calls = 0;
      const choice c = s.choose(std::vector<double>{n}, iterations, [&] {
        ++calls;
        return std::vector<double>{3};
      });
      EXPECT_EQ(calls, c.gathered ? 1 : 0);
      EXPECT_EQ(c.gathered, s.gathers(std::vector<double>{n}, iterations));
      gathered += calls;
      const std::string told = s.explain(std::vector<double>{n, 3}, iterations);
      const std::string name = s.what().candidates[static_cast<std::size_t>(c.candidate)].name;
      EXPECT_TRUE(told.ends_with("  " + name + "\n")) << told;
    }
  }
  EXPECT_GT(gathered, 0);
}

TEST(selectors, are_the_same_for_the_same_seed_and_come_back_from_json) {
  const std::string text = to_json(train(sample(1)));
  EXPECT_EQ(to_json(train(sample(1))), text);
  const selector back = read_selector(text, "s.json");
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(to_text(back), to_text(train(sample(1))));
}

TEST(selectors, that_are_damaged_are_refused) {
  const std::string text = to_json(train(sample(1, 60)));
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = text;
    const std::size_t at = random() % damaged.size();
    if (i % 2 == 0) {
      damaged.resize(at);
    } else {
      damaged[at] = static_cast<char>(random() % 256);
    }
    // A number or a name may change into another one; what cannot be used is refused.
    try {
      const selector s = read_selector(damaged, "damaged");
      (void)s.by_gathered(std::vector<double>{10, 3}, 1);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
    }
  }
  for (const char* wrong : {"", "{}", "[]", R"({"untax_selector": 2})", R"({"untax_selector": 1})"})
    EXPECT_NE(refusal([&] { (void)read_selector(wrong, "w"); }), "") << wrong;
}

TEST(emitted_headers, equal_the_checked_in_header) {
  const std::string path = UNTAX_SOURCE_DIR "/tests/select/emitted.hpp";
  const std::string text = text_of_file(path);
  EXPECT_TRUE(to_header(emitted_selector(), "emitted_sample") == text)
      << "emit it again: UNTAX_EMIT=" << path << " select_test --gtest_filter='emitted*'";
  if (const char* out = std::getenv("UNTAX_EMIT")) {  // NOLINT(concurrency-mt-unsafe)
    FILE* file = std::fopen(out, "wb");
    const std::string header = to_header(emitted_selector(), "emitted_sample");
    std::fwrite(header.data(), 1, header.size(), file);
    std::fclose(file);
  }
}

TEST(emitted_headers, choose_as_the_library_does) {
  const selector s = emitted_selector();
  std::mt19937_64 random(9);
  std::uniform_real_distribution<double> logarithm(0, 18);
  std::uniform_int_distribution<int> length(0, 45);
  std::uniform_real_distribution<double> edge(0, 1.6);
  for (int i = 0; i < untax_test::trials(100000); ++i) {
    double n = i % 3 == 0 ? std::floor(std::exp2(logarithm(random))) : std::exp2(logarithm(random));
    if (i % 5 == 0) n = edge(random) + (i % 2 == 0 ? 76 : 599.2);  // beside what guards say
    const double longest = length(random);
    const double iterations = i % 2 == 0 ? 1 : std::exp2(logarithm(random));
    const std::vector<double> given = {n, longest};
    const std::span<const double> known(given.data(), 1);
    ASSERT_EQ(emitted_sample::gathering_pays({n}, iterations), s.gathers(known, iterations));
    ASSERT_EQ(static_cast<int>(emitted_sample::choose({n}, iterations)),
              s.by_known(known, iterations));
    ASSERT_EQ(static_cast<int>(emitted_sample::choose({n}, {longest}, iterations)),
              s.by_gathered(given, iterations));
  }
}

TEST(emitted_headers, need_a_namespace) {
  const selector s = emitted_selector();
  for (const char* space : {"", "1a", "a b", "a::b"})
    EXPECT_NE(refusal([&] { (void)to_header(s, space); }), "") << space;
}

/// Public run times of real matrices: bench/select/README.md.
TEST(public_tables, are_learned_better_than_any_single_kernel) {
  struct bar {
    const char* device;
    double mean_ratio;
  };
  for (const bar b : {bar{"V100", 1.035}, bar{"MI250X", 1.035}}) {
    const std::string path = std::string(UNTAX_SOURCE_DIR "/bench/select/") + b.device;
    schema what = read_schema(text_of_file(path + ".json"), path);
    what.iterations = {1000};
    const table records = read_table(path + ".csv.gz", what);
    EXPECT_GT(records.records(), 2800U);
    const judgement result = cross_validate(records, 5, 11);
    double single = std::numeric_limits<double>::infinity();
    evaluation gathered;
    for (const evaluation& e : result.ways) {
      if (e.way == "gathered for free") gathered = e;
      if (e.way.starts_with("always ")) single = std::min(single, e.seconds);
    }
    EXPECT_LE(gathered.mean_ratio, b.mean_ratio) << b.device;
    EXPECT_LE(gathered.p99_ratio, 1.6) << b.device;
    EXPECT_LT(gathered.seconds, single) << b.device;
    EXPECT_EQ(gathered.failures, 0) << b.device;
  }
}

}  // namespace
}  // namespace untax::select
