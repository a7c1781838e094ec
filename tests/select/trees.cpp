#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <untax/select/tree.hpp>

#include "support.hpp"

namespace untax::select {
namespace {

struct lesson {
  grid features;
  grid loss;
};

lesson random_lesson(std::uint64_t seed, std::size_t records, std::size_t features,
                     std::size_t choices) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> few(0, 9);  // so that values occur twice
  std::uniform_real_distribution<double> lost(0, 1);
  lesson result{grid(records, features), grid(records, choices)};
  for (std::size_t i = 0; i < records; ++i) {
    for (std::size_t f = 0; f < features; ++f) result.features(i, f) = few(random);
    for (std::size_t c = 0; c < choices; ++c) result.loss(i, c) = lost(random);
  }
  return result;
}

double loss_of(const decision_tree& tree, const lesson& l) {
  double sum = 0;
  for (std::size_t i = 0; i < l.features.rows(); ++i)
    sum += l.loss(i, static_cast<std::size_t>(tree.choice(l.features.row(i))));
  return sum;
}

/// The least loss of one split, by trying all.
double best_stump(const lesson& l, std::size_t least_records) {
  const auto least_of = [&](const std::vector<std::size_t>& records) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < l.loss.cols(); ++c) {
      double sum = 0;
      for (const std::size_t i : records) sum += l.loss(i, c);
      least = std::min(least, sum);
    }
    return least;
  };
  std::vector<std::size_t> every_record;
  for (std::size_t i = 0; i < l.features.rows(); ++i) every_record.push_back(i);
  double best = least_of(every_record);
  for (std::size_t f = 0; f < l.features.cols(); ++f) {
    for (int threshold = 0; threshold < 9; ++threshold) {
      std::vector<std::size_t> low;
      std::vector<std::size_t> high;
      for (const std::size_t i : every_record)
        (l.features(i, f) <= threshold ? low : high).push_back(i);
      if (low.size() < least_records || high.size() < least_records) continue;
      best = std::min(best, least_of(low) + least_of(high));
    }
  }
  return best;
}

TEST(trees, of_one_split_are_the_best_of_all) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const lesson l = random_lesson(seed, 30 + seed, 3, 2 + seed % 4);
    for (const int records : {1, 4}) {
      const decision_tree tree = grow(l.features, l.loss, {1, 60, records});
      EXPECT_NEAR(loss_of(tree, l), best_stump(l, static_cast<std::size_t>(records)), 1e-9)
          << "seed " << seed << ", records " << records;
    }
  }
}

TEST(trees, keep_their_limits_and_report_their_loss) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const lesson l = random_lesson(seed, 400, 4, 3);
    const tree_limits limits{static_cast<int>(seed % 6), 1 + static_cast<int>(seed % 9), 7};
    const decision_tree tree = grow(l.features, l.loss, limits);
    EXPECT_LE(tree.depth(), limits.depth);
    EXPECT_LE(tree.leaves(), limits.leaves);
    double lost = 0;
    std::size_t records = 0;
    for (const decision_tree::node& n : tree.nodes()) {
      if (n.feature >= 0) continue;
      lost += n.loss;
      records += n.records;
      EXPECT_GE(n.records, 7U);
    }
    EXPECT_NEAR(lost, loss_of(tree, l), 1e-9);
    EXPECT_EQ(records, 400U);
  }
}

TEST(trees, lose_less_the_more_leaves_they_have) {
  const lesson l = random_lesson(5, 500, 4, 4);
  double before = std::numeric_limits<double>::infinity();
  const decision_tree full = grow(l.features, l.loss, {12, 60, 1});
  EXPECT_EQ(full.leaves(), 60);
  for (int leaves = 1; leaves <= 60; ++leaves) {
    const decision_tree tree = pruned(full, leaves);
    EXPECT_LE(tree.leaves(), leaves);
    const double lost = loss_of(tree, l);
    EXPECT_LE(lost, before + 1e-9);
    before = lost;
  }
}

TEST(trees, find_a_rule_of_two_features) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> place(0, 1);
  lesson l{grid(600, 2), grid(600, 2)};
  for (std::size_t i = 0; i < 600; ++i) {
    l.features(i, 0) = place(random);
    l.features(i, 1) = place(random);
    const bool first = l.features(i, 0) < 0.3 && l.features(i, 1) > 0.6;
    l.loss(i, 0) = first ? 0 : 1;
    l.loss(i, 1) = first ? 1 : 0;
  }
  const decision_tree tree = grow(l.features, l.loss, {4, 8, 1});
  EXPECT_EQ(loss_of(tree, l), 0);
  EXPECT_EQ(tree.leaves(), 3);
}

/// A form that splitting one node after the other does not fill well: what decides is whether two
/// features are alike, and a third one says a little.
TEST(trees, refined_lose_no_more) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    std::mt19937_64 random(seed);
    grid features;
    grid loss;
    for (int i = 0; i < 400; ++i) {
      const auto a = static_cast<double>(random() % 8);
      const auto b = static_cast<double>(random() % 8);
      const auto noise = static_cast<double>(random() % 8);
      const bool alike = (a < 4) == (b < 4);
      const double little = noise < 4 ? 0.2 : 0.0;
      features.add_row(std::vector{a, b, noise});
      loss.add_row(std::vector{alike ? little : 1.0, alike ? 1.0 : little});
    }
    const tree_limits limits{.depth = 6, .leaves = 7, .records = 5, .scatter = 0};
    const decision_tree tree = grow(features, loss, limits);
    const decision_tree better = refined(tree, features, loss, limits);
    const auto lost = [&](const decision_tree& subject) {
      double sum = 0;
      for (std::size_t i = 0; i < features.rows(); ++i)
        sum += loss(i, static_cast<std::size_t>(subject.choice(features.row(i))));
      return sum;
    };
    EXPECT_LE(lost(better), lost(tree) * (1 + 1e-12)) << seed;
    EXPECT_EQ(better.leaves(), tree.leaves());
    EXPECT_EQ(better.nodes().front().records, features.rows());
    double in_leaves = 0;
    for (const auto& n : better.nodes())
      if (n.feature < 0) in_leaves += n.loss;
    EXPECT_NEAR(in_leaves, lost(better), 1e-9);
    const decision_tree again = refined(tree, features, loss, limits);
    for (std::size_t n = 0; n < better.nodes().size(); ++n)
      EXPECT_EQ(again.nodes()[n].threshold, better.nodes()[n].threshold);
  }
}

TEST(trees, invalid_ones_are_refused) {
  using node = decision_tree::node;
  const auto refused = [](std::vector<node> nodes) {
    return !test::refusal([&] { (void)decision_tree(std::move(nodes)); }).empty();
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({{.feature = 0, .low = 0, .high = 1}, {}}));  // its own child
  EXPECT_TRUE(refused({{.feature = 0, .low = 1, .high = 2}, {}}));  // a child that is not there
  EXPECT_TRUE(refused({{.feature = 0, .low = 1, .high = 1}, {}}));  // one twice
  EXPECT_TRUE(refused({{.feature = -1}, {}}));                      // a node without a parent
  EXPECT_FALSE(refused({{.feature = 0, .low = 1, .high = 2}, {}, {}}));
}

}  // namespace
}  // namespace untax::select
