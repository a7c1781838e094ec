// Ranks that plan for GPUs of different sizes, or otherwise, are told so when they plan: by rank
// and field, not by a hang.
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "ops/collectives_common/planning.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/flash_decode/planning.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::own_patterns;

/// The error of each rank that compares these lines with its peers; empty if all agree.
std::vector<std::string> said(const std::vector<plan_lines>& of_ranks) {
  std::vector<std::string> all(of_ranks.size());
  try {
    run_threads(static_cast<int>(of_ranks.size()), [&](world& w) {
      const auto me = static_cast<std::size_t>(w.rank());
      try {
        agree_on_lines(w, "op", of_ranks[me]);
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::disagreement) << e.what();
        all[me] = e.what();
        throw;
      }
    });
  } catch (const error&) {
    // Each rank's is what is looked at.
  }
  return all;
}

/// Expects that every rank is told of rank `other`, and of a field.
void expect_named(const std::vector<std::string>& texts, int other, const std::string& field) {
  for (const std::string& text : texts) {
    EXPECT_NE(text.find(fmt::format("rank {}: op: ", other)), std::string::npos) << text;
    const auto what = text.find("what differs:");
    ASSERT_NE(what, std::string::npos) << text;
    EXPECT_LT(what, text.find("\n  rank ")) << "it comes before the plans: " << text;
    const std::string line = text.substr(what, text.find('\n', what) - what);
    EXPECT_NE(line.find(field), std::string::npos) << text;
    EXPECT_NE(line.find(fmt::format("at rank {}", other)), std::string::npos) << text;
  }
}

TEST(plan_agreement, ranks_with_the_same_plan_get_no_error) {
  std::vector<plan_lines> lines;
  for (int rank = 0; rank < 3; ++rank)
    lines.push_back(
        gather_plans({.m = 1024, .n = 3584, .k = 8192}, 3, rank, {}, 132).front().agreed());
  for (const std::string& text : said(lines)) EXPECT_EQ(text, "");
}

TEST(plan_agreement, a_rank_with_fewer_multiprocessors_is_named) {
  for (const pattern how : own_patterns) {
    operator_options options;
    options.how = how;
    std::vector<plan_lines> gathers;
    std::vector<plan_lines> scatters;
    for (int rank = 0; rank < 3; ++rank) {
      const int multiprocessors = rank == 2 ? 66 : 132;
      gathers.push_back(
          gather_plans({.m = 1024, .n = 3584, .k = 8192}, 3, rank, options, multiprocessors)
              .front()
              .agreed());
      scatters.push_back(
          scatter_plans({.m = 1024, .n = 7168, .k = 4096}, 3, rank, options, {multiprocessors})
              .front()
              .agreed());
    }
    SCOPED_TRACE(name_of(how));
    ASSERT_NE(gathers[0], gathers[2]);
    ASSERT_NE(scatters[0], scatters[2]);
    // Which field it is depends on the pattern; the first line that differs has it.
    expect_named(said(gathers), 2, "at rank 2");
    expect_named(said(scatters), 2, "at rank 2");
  }
}

TEST(plan_agreement, every_field_is_compared) {
  gather_plan plan =
      gather_plans({.m = 1024, .n = 3584, .k = 8192}, 2, 0, {.how = pattern::copy_engine}, 132)
          .front();
  const auto expect_field = [&](const std::string& field, auto change) {
    gather_plan other = plan;
    change(other);
    SCOPED_TRACE(field);
    expect_named(said({plan.agreed(), other.agreed()}), 1, field);
  };
  expect_field("placement", [](gather_plan& p) { p.who = gather_senders::warps; });
  expect_field("rate", [](gather_plan& p) { ++p.rate_limit; });
  expect_field("segment rows", [](gather_plan& p) { p.segment_rows += 64; });
  expect_field("sources", [](gather_plan& p) { p.sources.pop_back(); });
  expect_field("senders", [](gather_plan& p) { ++p.protocol.senders; });
  expect_field("sets", [](gather_plan& p) { ++p.protocol.sets; });
  expect_field("stages", [](gather_plan& p) { ++p.gemm.config.stages; });
  expect_field("stream-K tiles", [](gather_plan& p) { ++p.gemm.schedule.stream_k_tiles; });
  expect_field("k-blocks of a range", [](gather_plan& p) { ++p.gemm.schedule.range_k_blocks; });
  expect_field("multicast rows", [](gather_plan& p) { ++p.gemm.multicast_rows; });
  gather_plan unequal = plan;
  unequal.gemm.cycles += 1;
  unequal.protocol.rank = 1;
  EXPECT_EQ(unequal.agreed(), plan.agreed()) << "what ranks may differ in";
}

TEST(plan_agreement, compares_every_field_of_other_operators) {
  const collective_plan plan{.world = 2, .workers = 4, .chunk = 64, .keepers = 2, .serves = 3};
  collective_plan other = plan;
  other.rank = 1;
  EXPECT_EQ(fields_of(plan), fields_of(other));
  other.serves = 2;
  expect_named(said({{"all_gather", fields_of(plan)}, {"all_gather", fields_of(other)}}), 1,
               "serves 2");
  const flash_decode_plan attention{.world = 2, .workers = 4, .splits = 2};
  flash_decode_plan another = attention;
  another.rank = 1;
  EXPECT_EQ(fields_of(attention), fields_of(another));
  another.splits = 3;
  expect_named(said({{fields_of(attention)}, {fields_of(another)}}), 1, "splits 3");
}

}  // namespace
