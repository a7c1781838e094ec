// The selector that is kept for an H200, as a header that the build has emitted: bit for bit the
// choices of the library, guards included.
#include <gtest/gtest.h>

#if __has_include("kept_selector.hpp")
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/select/emit.hpp>
#include <untax/select/table.hpp>

#include "kept_selector.hpp"
#include "src/core/text_file.hpp"
#include "tests/slower_build.hpp"

namespace untax::select {
namespace {

constexpr std::size_t known_given = sizeof(kept::known_features) / sizeof(double);
constexpr std::size_t gathered_given = sizeof(kept::gathered_features) / sizeof(double);

selector kept_selector() {
  const std::string path = UNTAX_SOURCE_DIR "/bench/select/H200/selector.json";
  return read_selector(text_of_file(path), path);
}

/// Whether no matrix has the value: 0, a negative or huge one, and NaN.
bool is_odd(double value) { return !(value > 0 && value < 1e299); }

/// Values of what is given: powers of two with fractions, whole numbers, thresholds of the trees
/// and what is beside them, and what no input has.
class inputs {
 public:
  inputs(const selector& s, std::uint64_t seed) : random_(seed) {
    std::vector<int> given_of;  // of each feature; -1: computed
    int next = 0;
    for (const feature& f : s.what().features) given_of.push_back(f.given ? next++ : -1);
    thresholds_.resize(known_given + gathered_given + 1);
    const auto collect = [&](const decision_tree& tree, std::size_t features) {
      for (const decision_tree::node& n : tree.nodes()) {
        if (n.feature < 0) continue;
        const auto f = static_cast<std::size_t>(n.feature);
        const int given = f == features ? static_cast<int>(thresholds_.size()) - 1 : given_of[f];
        if (given >= 0) thresholds_[static_cast<std::size_t>(given)].push_back(n.threshold);
      }
    };
    std::size_t known = 0;
    for (const feature& f : s.what().features) known += f.gathered ? 0 : 1;
    collect(s.gather_tree(), known);
    collect(s.known_tree(), known);
    collect(s.gathered_tree(), s.what().features.size());
  }

  double operator()(std::size_t given) {
    const std::vector<double>& edges = thresholds_[given];
    const std::uint64_t kind = random_() % 32;
    if (kind < 6 && !edges.empty()) {
      const double edge = edges[random_() % edges.size()];
      const double far = kind % 2 == 0 ? std::numeric_limits<double>::infinity() : 0;
      return kind < 2 ? edge : std::nextafter(edge, far);
    }
    if (kind == 31) {
      constexpr std::array odd = {0.0, -1.0, 1e300, std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN()};
      return odd[random_() % odd.size()];
    }
    const double value = std::exp2(std::uniform_real_distribution<double>(0, 27)(random_));
    return kind % 2 == 0 ? std::floor(value) : value;
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::vector<double>> thresholds_;  // of each value that is given; last: iterations
};

TEST(kept_header, chooses_as_the_library_does) {
  const selector s = kept_selector();
  ASSERT_EQ(s.features().given_known(), known_given);
  ASSERT_EQ(s.features().given(), known_given + gathered_given);
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  inputs draw(s, seed);
  std::set<int> by_known;
  std::set<int> by_gathered;
  int pays = 0;
  int odd = 0;
  std::array<int, 4> refused{};  // without and with gathering: passed on, and not
  const int draws = untax_test::trials(100000);
  for (int i = 0; i < draws; ++i) {
    std::array<double, known_given> known{};
    std::array<double, gathered_given> gathered{};
    for (std::size_t f = 0; f < known.size(); ++f) known[f] = draw(f);
    for (std::size_t f = 0; f < gathered.size(); ++f) gathered[f] = draw(known_given + f);
    const double iterations = draw(known_given + gathered_given);
    std::vector<double> given(known.begin(), known.end());
    given.insert(given.end(), gathered.begin(), gathered.end());
    const auto k = std::bit_cast<kept::known_features>(known);
    const auto g = std::bit_cast<kept::gathered_features>(gathered);
    const bool does_pay = kept::gathering_pays(k, iterations);
    const int first = static_cast<int>(kept::choose(k, iterations));
    const int second = static_cast<int>(kept::choose(k, g, iterations));
    // The library refuses inputs without a finite feature; a header that is called in a kernel does
    // not.
    try {
      (void)s.by_gathered(given, iterations);
    } catch (const error& e) {
      ASSERT_EQ(e.code(), errc::invalid_argument) << i;
      ASSERT_TRUE(is_odd(iterations) || std::ranges::any_of(given, is_odd))
          << i << ": " << e.what();
      ++odd;
      continue;
    }
    ASSERT_EQ(does_pay, s.gathers(known, iterations)) << i;
    ASSERT_EQ(first, s.by_known(known, iterations)) << i;
    ASSERT_EQ(second, s.by_gathered(given, iterations)) << i;
    pays += does_pay ? 1 : 0;
    by_known.insert(first);
    by_gathered.insert(second);
    ++refused[static_cast<int>(kept::by_known_tree(k, iterations)) == first ? 0 : 1];
    ++refused[static_cast<int>(kept::by_gathered_tree(k, g, iterations)) == second ? 2 : 3];
  }
  // The inputs reach what they are about.
  EXPECT_GT(odd, draws / 1000);
  EXPECT_GT(pays, draws / 100);
  EXPECT_LT(pays, draws - draws / 100);
  EXPECT_GT(by_known.size(), 4U);
  EXPECT_GT(by_gathered.size(), 6U);
  for (const int count : refused) EXPECT_GT(count, draws / 1000);
}

TEST(kept_header, has_small_trees) {
  const selector s = kept_selector();
  EXPECT_EQ(std::size(kept::gather_tree), s.gather_tree().nodes().size());
  EXPECT_EQ(std::size(kept::known_tree), s.known_tree().nodes().size());
  EXPECT_EQ(std::size(kept::gathered_tree), s.gathered_tree().nodes().size());
  for (const decision_tree* tree : {&s.gather_tree(), &s.known_tree(), &s.gathered_tree()})
    EXPECT_LE(tree->leaves(), 60);
}

}  // namespace
}  // namespace untax::select

#else
TEST(kept_header, chooses_as_the_library_does) {
  GTEST_SKIP() << "no header was emitted, since the command is not built";
}
#endif
