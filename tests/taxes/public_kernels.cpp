// Times of others' kernels come from a file that says whose they are, and how they were found.
#include "bench/suites/public_kernels.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "bench/suites/overlap.hpp"
#include "sample.hpp"

namespace untax::test {
namespace {

constexpr const char* good = R"({"format": "untax-public-kernels", "kernels": [{
  "operator": "all_gather_gemm", "gather": "rows", "label": "their kernel", "name": "theirs", "source": null,
  "commit": null, "machine": "8 GPUs", "how": "from a table",
  "times": [{"ranks": 8, "m": 16, "n": 32, "k": 64, "microseconds": 12.5}]}]})";

std::string without(std::string text, const std::string& part, const std::string& instead = "") {
  text.replace(text.find(part), part.size(), instead);
  return text;
}

TEST(public_kernels, are_read_from_text) {
  const auto kernels = bench::parse_public_kernels(good);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].name, "theirs");
  EXPECT_EQ(kernels[0].source, "") << "not on record";
  const gemm_problem problem{.m = 16, .n = 32, .k = 64};
  EXPECT_DOUBLE_EQ(kernels[0].seconds(problem, 8), 12.5e-6);
  EXPECT_EQ(kernels[0].seconds(problem, 4), 0);
  EXPECT_EQ(kernels[0].seconds({.m = 16, .n = 32, .k = 64, .gather = gather_axis::k}, 8), 0);
  EXPECT_EQ(kernels[0].seconds({.m = 17, .n = 32, .k = 64}, 8), 0);
}

TEST(public_kernels, name_their_source_or_none) {
  for (const char* key :
       {"\"name\": \"theirs\", ", "\"source\": null,", "\"machine\": \"8 GPUs\", "})
    EXPECT_NE(error_text([&] { (void)bench::parse_public_kernels(without(good, key)); }), "")
        << key;
  EXPECT_NE(error_text([&] { (void)bench::parse_public_kernels(without(good, "from a table")); }),
            "");
  for (const char* time : {"0", "-1", "null"}) {
    const std::string wrong = without(good, "12.5", time);
    EXPECT_NE(error_text([&] { (void)bench::parse_public_kernels(wrong); }), "") << time;
  }
  EXPECT_NE(error_text([&] { (void)bench::parse_public_kernels("{}"); }), "");
}

TEST(public_kernels, of_the_file_give_the_suite_its_shapes) {
  const bench::public_kernel* known = bench::public_kernel_of("all_gather_gemm");
  ASSERT_NE(known, nullptr);
  EXPECT_FALSE(known->how.empty());
  EXPECT_EQ(bench::public_kernel_of("gemm_all_scatter"), nullptr);
  const auto problems =
      bench::overlap_problems("all_gather_gemm", bench::overlap_shapes::prefill, 4, {});
  for (const bench::public_time& t : known->times) {
    if (t.ranks != 4) continue;
    const bool present = std::ranges::any_of(
        problems, [&](const gemm_problem& p) { return p.m == t.m && p.n == t.n && p.k == t.k; });
    EXPECT_TRUE(present) << t.m << " x " << t.n << " x " << t.k;
  }
}

TEST(public_kernels, name_the_bar_of_a_report) {
  const bench::public_kernel& known = *bench::public_kernel_of("all_gather_gemm");
  const bench::public_time& t = known.times.front();
  bench::overlap_report report;
  report.operator_name = "all_gather_gemm";
  report.ranks = t.ranks;
  bench::overlap_row row;
  row.problem = {.m = t.m, .n = t.n, .k = t.k, .type = dtype::bf16};
  row.compute_bound = t.seconds / 4;
  row.tolerance = 1;
  for (const char* way : {library_eager, library_graph, "fused_sequential"}) {
    pattern_figure f;
    f.by = way;
    f.library = f.by != "fused_sequential";
    f.how = f.library ? pattern::bulk_library : pattern::fused_sequential;
    f.time = exactly(t.seconds / 2);
    row.figures.push_back(f);
  }
  report.rows = {row};
  const auto bars = report.bars();
  ASSERT_FALSE(bars.empty());
  EXPECT_EQ(bars.back().what, known.label + " / time, least");
  EXPECT_DOUBLE_EQ(bars.back().value, 2);
}

}  // namespace
}  // namespace untax::test
