// The check of all_reduce_norm sees single wrong words, elements of e4m3 that are not the nearest
// ones, and wrong scales.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <untax/core/fp8.hpp>

#include "mutated.hpp"
#include "ops/all_reduce_norm/reference.hpp"
#include "ops/common/random_matrix.hpp"

namespace {

using namespace checks_test;
using namespace untax;

constexpr int ranks = 2;

/// Results of many rows, which begin right.
class norm_rows {
 public:
  norm_rows(std::int64_t tokens, std::int64_t hidden, norm_output output)
      : p_{.tokens = tokens, .hidden = hidden, .type = dtype::bf16, .output = output} {
    for (std::int64_t i = 0; i < hidden; ++i)
      weight_.push_back(static_cast<double>(random_matrix{9}.at(0, i)));
    for (std::int64_t row = 0; row < tokens; ++row) {
      double squares = 0;
      for (std::int64_t i = 0; i < hidden; ++i) {
        sums_.push_back(static_cast<double>(random_matrix{8}.at(row, i)) * std::sqrt(ranks + 1.0));
        x.emplace_back(static_cast<float>(sums_.back()));
        squares += std::pow(static_cast<double>(static_cast<float>(x.back())), 2);
      }
      const double inverse =
          1 / std::sqrt(squares / static_cast<double>(hidden) + static_cast<double>(p_.epsilon));
      double most = 0;
      for (std::size_t i = 0; i < weight_.size(); ++i) {
        exact.push_back(static_cast<double>(static_cast<float>(x[x.size() - weight_.size() + i])) *
                        inverse * weight_[i]);
        most = std::max(most, std::abs(exact.back()));
      }
      scales.push_back(output == norm_output::e4m3_per_token
                           ? static_cast<float>(most / static_cast<double>(e4m3::largest))
                           : 1.0F / 16);
    }
    for (std::size_t i = 0; i < exact.size(); ++i) {
      same.emplace_back(static_cast<float>(exact[i]));
      narrow.emplace_back(static_cast<float>(in_scale(i)));
    }
  }

  [[nodiscard]] double in_scale(std::size_t i) const {
    return exact[i] / static_cast<double>(scales[i / weight_.size()]);
  }
  [[nodiscard]] double tolerance() const { return tolerance_of(p_); }
  [[nodiscard]] double error() const {
    norm_reference right(p_, ranks, weight_);
    const std::size_t width = weight_.size();
    for (std::size_t row = 0; row < scales.size(); ++row) {
      const std::size_t at = row * width;
      const void* out = p_.output == norm_output::same ? static_cast<const void*>(&same[at])
                                                       : static_cast<const void*>(&narrow[at]);
      right.add_row(std::span<const double>(sums_).subspan(at, width), {&x[at], out, scales[row]});
    }
    return right.relative_error();
  }

  std::vector<bf16> x;
  std::vector<bf16> same;
  std::vector<e4m3> narrow;
  std::vector<float> scales;
  std::vector<double> exact;

 private:
  all_reduce_norm_problem p_;
  std::vector<double> weight_;
  std::vector<double> sums_;
};

TEST(check_of_norms, sees_a_wrong_word) {
  norm_rows rows(256, 4096, norm_output::same);
  expect_seen(std::span(rows.same), rows.tolerance(), [&] { return rows.error(); });
  expect_seen(std::span(rows.x), rows.tolerance(), [&] { return rows.error(); });
}

TEST(check_of_norms, sees_elements_of_e4m3_that_are_not_the_nearest) {
  for (const norm_output output : {norm_output::e4m3, norm_output::e4m3_per_token}) {
    norm_rows rows(64, 1024, output);
    ASSERT_LE(rows.error(), rows.tolerance());
    // One element in the middle whose nearest number is farther from zero.
    std::size_t at = rows.narrow.size() / 2;
    const auto value = [&] { return static_cast<double>(static_cast<float>(rows.narrow[at])); };
    const auto rounded_up = [&] {
      const double off = std::abs(value()) - std::abs(rows.in_scale(at));
      return off > 0.1 * half_step_of_e4m3(value());
    };
    while (!rounded_up()) ++at;
    const e4m3 nearest = rows.narrow[at];
    --rows.narrow[at].bits;
    EXPECT_GT(rows.error(), rows.tolerance()) << "rounded down";
    rows.narrow[at] = nearest;
    ++rows.narrow[at].bits;
    EXPECT_GT(rows.error(), rows.tolerance()) << "a step too far";
    rows.narrow[at] = e4m3(std::numeric_limits<float>::quiet_NaN());
    EXPECT_GT(rows.error(), rows.tolerance()) << "NaN";
    rows.narrow[at] = nearest;
    EXPECT_LE(rows.error(), rows.tolerance());
  }
}

TEST(check_of_norms, sees_wrong_scales) {
  norm_rows rows(64, 1024, norm_output::e4m3_per_token);
  for (const float factor : {1.05F, 0.95F, 1.001F}) {
    const float right = rows.scales[20];
    rows.scales[20] = right * factor;
    // Elements that fit the wrong scale.
    const std::vector<e4m3> kept = rows.narrow;
    for (std::size_t i = 20 * 1024; i < 21 * 1024; ++i)
      rows.narrow[i] = e4m3(static_cast<float>(rows.in_scale(i)));
    EXPECT_GT(rows.error(), rows.tolerance()) << factor;
    rows.narrow = kept;
    rows.scales[20] = right;
  }
  rows.scales[63] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_GT(rows.error(), rows.tolerance());
}

TEST(check_of_norms, knows_the_steps_of_e4m3) {
  for (int bits = 0; bits < 0x7e; ++bits) {
    e4m3 low;
    e4m3 high;
    low.bits = static_cast<std::uint8_t>(bits);
    high.bits = static_cast<std::uint8_t>(bits + 1);
    const auto a = static_cast<double>(static_cast<float>(low));
    const auto b = static_cast<double>(static_cast<float>(high));
    EXPECT_EQ(2 * half_step_of_e4m3(a), b - a) << a;
    EXPECT_EQ(2 * half_step_of_e4m3((a + b) / 2), b - a) << a;
    EXPECT_EQ(half_step_of_e4m3(-a), half_step_of_e4m3(a)) << a;
  }
}

}  // namespace
