// Where time went: parts add up to the time of a run, and faults are found at the right rank.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <untax/flow/fault_plan.hpp>
#include <untax/trace/account.hpp>

#include "support.hpp"

namespace untax::testing {
namespace {

using std::chrono::milliseconds;

double near(double seconds) { return seconds * 0.01 + 1e-9; }

TEST(trace_account, parts_add_up_to_the_time_of_a_run) {
  for (const char* name :
       {"all_gather_gemm", "gemm_all_scatter", "gemm_reduce_scatter", "gemm_all_reduce"}) {
    for (const pattern how : traced_patterns()) {
      for (const launch_mode launch : {launch_mode::graph, launch_mode::eager}) {
        operator_options options = traced_way(how);
        options.launch = launch;
        const auto accounts = accounts_of(traced_runs(name, options, 3, epochs));
        ASSERT_EQ(accounts.size(), 1U);
        ASSERT_EQ(accounts[0].runs.size(), epochs) << name << " " << name_of(how);
        for (const run_account& run : accounts[0].runs) {
          EXPECT_NEAR(run.path.total(), run.wall(), near(run.wall()));
          for (const auto& rank : run.ranks)
            EXPECT_NEAR(rank.total(), run.wall(), near(run.wall()));
          EXPECT_EQ(run.unmatched, 0) << name << " " << name_of(how);
        }
        EXPECT_NEAR(accounts[0].path.total(), accounts[0].wall, near(accounts[0].wall));
        for (const auto& rank : accounts[0].ranks)
          EXPECT_GT(rank[trace_part::compute], 0) << name << " " << name_of(how);
      }
    }
  }
}

/// How long a fault has to last so that nothing else of a run comes near it, on any machine: nor
/// how long a busy one keeps the other rank from its call.
milliseconds long_enough(const std::string& name, const operator_options& options) {
  double longest = 0;
  for (const auto& account : accounts_of(traced_runs(name, options, 2, epochs))) {
    for (const run_account& run : account.runs) longest = std::max(longest, run.wall());
  }
  return std::max(milliseconds(200), milliseconds(static_cast<int>(longest * 5e3)));
}

class planted_fault : public ::testing::TestWithParam<std::string> {
 protected:
  static std::vector<pattern> ways() {
    return {pattern::bulk_synchronous, pattern::producer_consumer, pattern::fused_specialized};
  }
};

TEST_P(planted_fault, a_rank_that_comes_late_is_named) {
  for (const pattern how : ways()) {
    const operator_options options = traced_way(how);
    const milliseconds late = long_enough(GetParam(), options);
    const auto result =
        diagnosed(traced_runs(GetParam(), options, 2, epochs, [&](int rank, std::uint64_t epoch) {
          if (rank == 1 && epoch == struck_epoch) std::this_thread::sleep_for(late);
        }));
    EXPECT_EQ(result.worst.part, trace_part::entry) << name_of(how);
    EXPECT_EQ(result.worst.rank, 1) << name_of(how);
    EXPECT_GE(result.seconds, 0.9e-3 * static_cast<double>(late.count())) << name_of(how);
    EXPECT_GT(result.run.ranks.at(0)[trace_part::late_peer], result.seconds / 4) << name_of(how);
  }
}

TEST_P(planted_fault, a_slow_link_is_named) {
  for (const pattern how : ways()) {
    operator_options options = traced_way(how);
    const milliseconds slow = long_enough(GetParam(), options);
    fault late{fault_kind::delay, 1, channel_verb::publish, struck_epoch};
    late.duration = slow;
    options.faults = std::make_shared<fault_plan>(late);
    const auto result = diagnosed(traced_runs(GetParam(), options, 2, epochs));
    EXPECT_EQ(result.worst.part, trace_part::in_flight) << name_of(how);
    EXPECT_EQ(result.worst.peer, 1) << name_of(how);
    EXPECT_GE(result.seconds, 0.5e-3 * static_cast<double>(slow.count())) << name_of(how);
  }
}

TEST_P(planted_fault, a_late_launch_is_named) {
  for (const pattern how : ways()) {
    operator_options options = traced_way(how);
    const milliseconds late = long_enough(GetParam(), options);
    options.faults = std::make_shared<late_launch>(late);
    const auto result = diagnosed(traced_runs(GetParam(), options, 2, epochs));
    EXPECT_EQ(result.worst.part, trace_part::launch) << name_of(how);
    EXPECT_EQ(result.worst.rank, 1) << name_of(how);
    EXPECT_GE(result.seconds, 0.9e-3 * static_cast<double>(late.count())) << name_of(how);
  }
}

INSTANTIATE_TEST_SUITE_P(operators, planted_fault,
                         ::testing::Values("all_gather_gemm", "gemm_reduce_scatter"),
                         [](const auto& tested) { return tested.param; });

/// A record by hand, with all answers known: rank 1 calls 100 ns late, computes 200 ns, signals;
/// the signal is under way for 50 ns, and then rank 0 computes for 30 ns.
TEST(trace_account, the_critical_path_goes_on_at_the_peer_that_signalled) {
  const auto operator_of = [](int rank) {
    traced_operator op;
    op.id = 1;
    op.name = "by hand";
    op.rank = rank;
    op.ranks = 2;
    op.kernels = {{"only", 0, 1}};
    op.workers.resize(1);
    return op;
  };
  const auto span = [](trace_kind kind, std::uint64_t begin, std::uint64_t end, int what = 0) {
    trace_span s;
    s.kind = kind;
    s.begin = begin;
    s.end = end;
    s.what = what;
    return s;
  };
  constexpr int multiply = static_cast<int>(action::multiply);
  traced_operator early = operator_of(0);
  early.calls = {span(trace_kind::stage, 1002, 1395), span(trace_kind::run, 1000, 1400)};
  trace_span wait = span(trace_kind::wait, 1010, 1360, static_cast<int>(channel_verb::acquire));
  wait.owner = 0;
  wait.counter = 5;
  wait.number = 1;
  wait.peer = 1;
  early.workers[0] = {wait, span(trace_kind::action, 1360, 1390, multiply),
                      span(trace_kind::kernel, 1010, 1390)};
  traced_operator late = operator_of(1);
  late.calls = {span(trace_kind::stage, 1102, 1325), span(trace_kind::run, 1100, 1330)};
  trace_span signal = span(trace_kind::signal, 1310, 1310);
  signal.owner = 0;
  signal.counter = 5;
  signal.number = 1;
  late.workers[0] = {span(trace_kind::action, 1110, 1310, multiply), signal,
                     span(trace_kind::kernel, 1110, 1320)};
  const auto accounts = accounts_of({{early, late}});
  ASSERT_EQ(accounts.size(), 1U);
  const auto in_ns = [](double seconds) { return std::lround(seconds * 1e9); };
  const run_account& run = accounts[0].runs.at(0);
  EXPECT_EQ(in_ns(run.wall()), 400);
  EXPECT_EQ(in_ns(run.path[trace_part::entry]), 100);
  EXPECT_EQ(in_ns(run.path[trace_part::launch]), 10 + 10);
  EXPECT_EQ(in_ns(run.path[trace_part::compute]), 200 + 30);
  EXPECT_EQ(in_ns(run.path[trace_part::in_flight]), 50);
  EXPECT_EQ(in_ns(run.path.total()), 400);
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::late_peer]), 300);
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::in_flight]), 50);
  EXPECT_EQ(in_ns(run.ranks[1][trace_part::entry]), 100);
  EXPECT_EQ(in_ns(run.ranks[1][trace_part::idle]), 10 + 70);
  EXPECT_EQ(accounts[0].causes.front().text(), "compute at rank 1");
  const auto pieces = typical_timeline({{early, late}}, accounts[0]);
  const auto flight = std::ranges::find(pieces, trace_part::in_flight, &timeline_piece::part);
  ASSERT_NE(flight, pieces.end());
  EXPECT_EQ(in_ns(flight->begin), 310);
  EXPECT_EQ(in_ns(flight->end), 360);
  EXPECT_EQ(flight->rank, 0);
  EXPECT_EQ(flight->from_rank, 1);
  EXPECT_EQ(in_ns(flight->sent), 310);
}

}  // namespace
}  // namespace untax::testing
