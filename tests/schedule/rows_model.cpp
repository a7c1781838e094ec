#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engines/model/explore.hpp"
#include "tests/schedule/rows.hpp"

// Runs of different numbers of rows on a memory that shows stale reads.

namespace untax::test {
namespace {

constexpr std::int64_t depth = 16;

model::scenario scenario_of(const subject& s, const std::vector<std::int64_t>& rows) {
  const auto whole_a = [](std::uint64_t epoch, std::int64_t row, std::int64_t k) {
    return model::sample(epoch, row, k);
  };
  const auto whole_b = [](std::uint64_t of_rank, std::int64_t col, std::int64_t k) {
    return model::sample(1000 + of_rank, col, k);
  };
  const auto share = [=](int rank, std::uint64_t epoch) {
    const std::size_t run = epoch <= rows.size() ? static_cast<std::size_t>(epoch - 1) : 0;
    return s.share(rank, rows[run]);
  };
  model::scenario result;
  result.name = s.name;
  result.plans = plans_of(s, rows);
  result.a = [=](int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    const gemm_share part = share(rank, epoch);
    return whole_a(epoch, part.a_rows.begin + row, part.a_cols.begin + col);
  };
  result.b = [=](int rank, std::int64_t col, std::int64_t k) {
    const gemm_share part = share(rank, 1);
    return whole_b(part.b_of_rank, part.b_rows.begin + col, part.b_cols.begin + k);
  };
  result.expected = [=](int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
    const gemm_share part = share(rank, epoch);
    std::uint64_t sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      sum += whole_a(epoch, part.c_rows.begin + row, k) *
             whole_b(part.b_of_rank, part.c_cols.begin + col, k);
    }
    return sum;
  };
  return result;
}

TEST(explore_rows, no_order_of_runs_goes_wrong) {
  for (const subject& s : gemms(2)) {
    for (const std::vector<std::int64_t>& rows :
         {std::vector<std::int64_t>{1, 4, 1, 5}, {5, 0, 2, 2}}) {
      const auto result = model::explore(scenario_of(s, rows), {.executions = 20});
      EXPECT_TRUE(result.ok) << s.name << ": " << result.failure;
    }
  }
}

}  // namespace
}  // namespace untax::test
