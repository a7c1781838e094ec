// The contract of every way, asked of the host; and of ways that break it, which have to be seen.

#include "contract.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

namespace untax::sparse {
namespace {

using namespace test;

template <class Value, class Offset>
maker_of<Value, Offset> by_threads(spmv_kernel kernel, int threads) {
  return [=](const csr<Value, Offset>& m) -> product_of<Value> {
    // Kernels by CSR read the matrix where it lies.
    const auto kept = std::make_shared<const csr<Value, Offset>>(m);
    const auto result = std::make_shared<spmv<Value, Offset>>(kept->view(), kernel, threads);
    return [kept, result](Value alpha, const std::vector<Value>& x, Value beta,
                          std::vector<Value>& y) { result->run(alpha, x, beta, y); };
  };
}

template <class Value, class Offset>
void try_ways(const std::vector<std::int64_t>& lengths, std::int64_t cols, std::uint64_t seed) {
  const auto m = with_rows<Value, Offset>(lengths, cols, seed);
  for (const spmv_kernel kernel : all_spmv_kernels) {
    if (!way_of(kernel).on_host) continue;
    try {
      EXPECT_EQ(broken_contract(m, by_threads<Value, Offset>(kernel, 3), true, seed), "")
          << name_of(kernel) << ", seed " << seed;
    } catch (const error& e) {
      EXPECT_EQ(kernel, spmv_kernel::ell) << e.what();
    }
  }
}

TEST(contract, holds_on_threads) {
  std::uint64_t seed = 1;
  for (const auto& lengths : odd_lengths()) try_ways<double, std::int32_t>(lengths, 9000, ++seed);
  std::mt19937_64 random(77);
  for (int i = 0; i < 4; ++i) {
    const auto cols = static_cast<std::int64_t>(random() % 2000) + 1;
    const auto rows = static_cast<std::int64_t>(random() % 900);
    try_ways<float, std::int64_t>(random_lengths(rows, cols, random), cols, random());
  }
}

/// A plain product that does something wrong.
template <class Wrong>
maker_of<double, std::int32_t> mutant(const Wrong& wrong) {
  return [=](const csr<double, std::int32_t>& m) -> product_of<double> {
    return [=](double alpha, const std::vector<double>& x, double beta, std::vector<double>& y) {
      for (std::size_t r = 0; r < y.size(); ++r) {
        double sum = 0;
        for (auto i = static_cast<std::size_t>(m.offsets[r]);
             i < static_cast<std::size_t>(m.offsets[r + 1]); ++i)
          sum += m.values[i] * x[static_cast<std::size_t>(m.columns[i])];
        wrong(r, alpha * sum, beta, m, x, y);
      }
    };
  };
}

TEST(contract, catches_violations) {
  const auto m = with_rows<double, std::int32_t>({3, 0, 900, 4}, 1000, 5);
  using matrix = csr<double, std::int32_t>;
  using vector = std::vector<double>;
  const auto put = [](std::size_t r, double sum, double beta, vector& y) {
    y[r] = beta == 0 ? sum : sum + beta * y[r];
  };
  const auto seen = [&](const auto& wrong) {
    return !broken_contract(m, mutant(wrong), true, 5).empty();
  };
  EXPECT_FALSE(seen([&](std::size_t r, double sum, double beta, const matrix&, const vector&,
                        vector& y) { put(r, sum, beta, y); }));
  // An empty row is not written.
  EXPECT_TRUE(
      seen([&](std::size_t r, double sum, double beta, const matrix& a, const vector&, vector& y) {
        if (a.offsets[r] < a.offsets[r + 1]) put(r, sum, beta, y);
      }));
  // y is read where beta is 0.
  EXPECT_TRUE(seen([&](std::size_t r, double sum, double beta, const matrix&, const vector&,
                       vector& y) { y[r] = sum + beta * y[r]; }));
  // Padding multiplies what x has somewhere.
  EXPECT_TRUE(seen([&](std::size_t r, double sum, double beta, const matrix&, const vector& x,
                       vector& y) { put(r, sum + 0 * std::reduce(x.begin(), x.end()), beta, y); }));
  // An element is lost, or counts twice.
  EXPECT_TRUE(seen(
      [&](std::size_t r, double sum, double beta, const matrix& a, const vector& x, vector& y) {
        const auto at = static_cast<std::size_t>(a.offsets[r]);
        const bool has_element = r == 2;
        put(r, has_element ? sum - a.values[at] * x[static_cast<std::size_t>(a.columns[at])] : sum,
            beta, y);
      }));
  // Beta counts twice, as when two units write a row.
  EXPECT_TRUE(seen([&](std::size_t r, double sum, double beta, const matrix&, const vector&,
                       vector& y) { put(r, sum, r == 3 ? 2 * beta : beta, y); }));
}

TEST(contract, catches_other_bits) {
  const auto m = with_rows<double, std::int32_t>({3, 0, 900, 4}, 1000, 6);
  int turn = 0;
  const auto wavers = mutant([&](std::size_t r, double sum, double beta, const auto&, const auto&,
                                 std::vector<double>& y) {
    ++turn;
    const double other = sum * (1 + 1e-15 * (turn % 7));
    y[r] = beta == 0 ? other : other + beta * y[r];
  });
  EXPECT_NE(sums_wrong(m, wavers, true, 6), "");
  EXPECT_EQ(sums_wrong(m, wavers, false, 6), "");
}

/// The units of every way that has them.
TEST(contract, units_have_each_row_and_element_once) {
  std::mt19937_64 random(9);
  std::vector<std::vector<std::int64_t>> all = odd_lengths();
  for (int i = 0; i < 20; ++i) all.push_back(random_lengths(200, 300, random));
  for (const auto& lengths : all) {
    const auto m = with_rows<double, std::int64_t>(lengths, 9000, 1);
    for (const std::int64_t size : {1, 7, 64, 1024}) {
      for (const unit_of_work how :
           {unit_of_work::whole_rows, unit_of_work::path, unit_of_work::elements}) {
        const std::int64_t units = units_of(how, m.rows, m.view().size(), size);
        path_point last = begin_of_unit(how, m.offsets.data(), m.rows, size, 0);
        EXPECT_EQ(last, (path_point{0, 0}));
        for (std::int64_t u = 1; u <= units; ++u) {
          const path_point next = begin_of_unit(how, m.offsets.data(), m.rows, size, u);
          const std::int64_t rows = next.rows - last.rows;
          const std::int64_t entries = next.entries - last.entries;
          ASSERT_GE(rows, 0);
          ASSERT_GE(entries, 0);
          if (how == unit_of_work::path) {
            ASSERT_LE(rows + entries, size);
          }
          if (how == unit_of_work::elements) {
            ASSERT_LE(entries, size);
          }
          if (how == unit_of_work::whole_rows) {
            ASSERT_EQ(next.entries, m.offsets[static_cast<std::size_t>(next.rows)]);
            // Only the first row may be longer than a unit.
            if (rows > 0) {
              ASSERT_LE(next.entries - m.offsets[static_cast<std::size_t>(last.rows) + 1], size);
            }
          }
          last = next;
        }
        EXPECT_EQ(last, (path_point{m.rows, m.view().size()}));
      }
    }
  }
}

}  // namespace
}  // namespace untax::sparse
