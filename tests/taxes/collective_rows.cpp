// Which figure of NCCL a collective is compared with.
#include <gtest/gtest.h>

#include "bench/suites/collectives.hpp"
#include "sample.hpp"

namespace untax::test {
namespace {

bench::collective_figure figure(const char* variant, bool library, double seconds) {
  return {variant, library, "", exactly(seconds), ""};
}

TEST(collective_rows, are_compared_with_the_quicker_way_of_nccl) {
  bench::collective_row row;
  EXPECT_EQ(row.library(), nullptr);
  row.figures = {figure("untax", false, 1e-6), figure("NCCL", true, 6e-6),
                 figure("NCCL windows", true, 4e-6)};
  ASSERT_NE(row.library(), nullptr);
  EXPECT_EQ(row.library()->variant, "NCCL windows");
  row.figures[1] = figure("NCCL", true, 3e-6);
  EXPECT_EQ(row.library()->variant, "NCCL");
  row.figures[1].time.reset();  // refused
  EXPECT_EQ(row.library()->variant, "NCCL windows");
}

}  // namespace
}  // namespace untax::test
