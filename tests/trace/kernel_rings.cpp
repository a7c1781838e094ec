// Events of kernels, decoded without a GPU: rings written by hand, with known results.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <untax/flow/fault_tap.hpp>
#include <untax/flow/wait_site.hpp>
#include <untax/tile/step.hpp>
#include <untax/trace/account.hpp>
#include <untax/trace/json.hpp>

#include "engines/gpu/trace/decode.hpp"
#include "kernel_rings.hpp"

namespace untax::testing {
namespace {

TEST(trace_kernel_rings, words_give_back_their_fields) {
  std::mt19937_64 random(20250301);
  for (int i = 0; i < 1000; ++i) {
    const auto below = [&](std::uint64_t end) { return random() % end; };
    const auto epoch = below(std::uint64_t{1} << 44U);
    const int launch = static_cast<int>(below(256));
    const int cluster = 1 + static_cast<int>(below(16));
    const auto kernel = event_word::kernel_begin(warp_role::poller, launch, epoch, cluster);
    EXPECT_EQ(kernel.kind(), trace_kind::kernel);
    EXPECT_FALSE(kernel.ends());
    EXPECT_EQ(kernel.what(), static_cast<int>(warp_role::poller));
    EXPECT_EQ(kernel.launch(), launch);
    EXPECT_EQ(kernel.epoch(), static_cast<std::int64_t>(epoch));
    EXPECT_EQ(kernel.with_epoch(epoch + 1).epoch(),
              static_cast<std::int64_t>(epoch == 0 ? epoch + 1 : epoch));
    EXPECT_EQ(kernel.cluster(), cluster);
    EXPECT_EQ(kernel.with_epoch(epoch + 1).cluster(), cluster);
    const auto counted =
        event_word::kernel_begin(warp_role::producer, launch, 0, cluster).with_epoch(epoch);
    EXPECT_EQ(counted.epoch(), static_cast<std::int64_t>(epoch));
    EXPECT_EQ(counted.what(), static_cast<int>(warp_role::producer));
    const std::uint64_t counter = below(std::uint64_t{1} << 44U) << 3U;
    const std::uint64_t value = below(1 << 16);
    const auto signal = event_word::at_counter(trace_kind::signal, counter, value);
    EXPECT_EQ(signal.kind(), trace_kind::signal);
    EXPECT_EQ(signal.counter(), counter);
    EXPECT_EQ(signal.value(), static_cast<std::int64_t>(value));
    const int peer = static_cast<int>(below(255));
    const int room = static_cast<int>(below(1 << 24));
    const auto wait = event_word::wait_end(static_cast<int>(verb::reserve), peer, room);
    EXPECT_TRUE(wait.ends());
    EXPECT_EQ(wait.peer(), peer);
    EXPECT_EQ(wait.room(), room);
    EXPECT_EQ(wait.what(), static_cast<int>(verb::reserve));
  }
  EXPECT_EQ(event_word::wait_end(0, -1, 0).peer(), -1);
}

TEST(trace_kernel_rings, the_clock_of_a_gpu_drifts_along_a_line) {
  const gpu::clock_line line{1'000'000'000, -400, 3'000'000'000, 600};
  EXPECT_EQ(line.on_host(1'000'000'000), 999'999'600U);
  EXPECT_EQ(line.on_host(2'000'000'000), 2'000'000'100U);
  EXPECT_EQ(line.on_host(3'000'000'000), 3'000'000'600U);
  const gpu::clock_line point{1000, 50, 0, 0};
  EXPECT_EQ(point.on_host(5000), 5050U);
}

/// Rank 1 is called 100 ns late. In it a worker multiplies for 200 ns and a sender signals; the
/// signal takes 50 ns. In rank 0 a producer waits for it, and then a multiplier of its block
/// multiplies for 30 ns.
std::vector<traced_operator> two_ranks(std::uint64_t late, std::uint64_t epoch = 1,
                                       std::uint64_t at = 1000) {
  const auto use = epoch;
  noting_warp producer(0, 0, 0);
  producer.begin(at + 10, warp_role::producer, epoch)
      .wait(at + 10, at + late + 260, ready, use, 1)
      .end(at + late + 262);
  noting_warp multiplier(0, 4, 0);
  multiplier.begin(at + 10, warp_role::multiplier, epoch)
      .act(at + late + 260, at + late + 290, action::multiply)
      .end(at + late + 290);
  noting_warp sender(0, 0, 1);
  sender.begin(at + late + 10, warp_role::sender, epoch)
      .act(at + late + 10, at + late + 210, action::multiply)
      .signal(at + late + 210, 0, ready, use)
      .end(at + late + 220);
  return {decoded(0, {producer, multiplier}, {at}), decoded(1, {sender}, {at + late})};
}

TEST(trace_kernel_rings, parts_add_up_and_the_late_rank_is_named) {
  const trace_record record{two_ranks(100)};
  const auto accounts = accounts_of(record);
  ASSERT_EQ(accounts.size(), 1U);
  ASSERT_EQ(accounts[0].runs.size(), 1U);
  const run_account& run = accounts[0].runs[0];
  EXPECT_EQ(in_ns(run.wall()), 390);
  EXPECT_EQ(in_ns(run.path[trace_part::entry]), 100);
  EXPECT_EQ(in_ns(run.path[trace_part::launch]), 10);
  EXPECT_EQ(in_ns(run.path[trace_part::compute]), 200 + 30);
  EXPECT_EQ(in_ns(run.path[trace_part::in_flight]), 50);
  EXPECT_EQ(in_ns(run.path.total()), 390);
  for (const trace_breakdown& rank : run.ranks) EXPECT_EQ(in_ns(rank.total()), 390);
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::late_peer]), 300 / 2) << "of one of two warps";
  EXPECT_EQ(run.unmatched, 0);
  EXPECT_EQ(accounts[0].causes.front().text(), "compute at rank 1");
  const auto later = accounts_of({two_ranks(5000)});
  EXPECT_EQ(later[0].causes.front().text(), "skew at entry at rank 1");
}

TEST(trace_kernel_rings, survive_a_file_with_names_and_arrows) {
  const trace_record record{two_ranks(100)};
  const std::string text = to_trace_json(record);
  EXPECT_EQ(trace_from_json(text), record);
  const auto written = nlohmann::json::parse(text);
  int arrows = 0;
  std::vector<std::string> names;
  for (const auto& event : written.at("traceEvents")) {
    if (event.at("ph") == "s") ++arrows;
    if (event.value("name", "") == "thread_name") names.push_back(event.at("args").at("name"));
  }
  EXPECT_EQ(arrows, 1);
  EXPECT_NE(std::ranges::find(names, "CTA 0, warp 4, multiplier"), names.end());
  EXPECT_NE(std::ranges::find(names, "CTA 0, warp 0, sender"), names.end());
}

TEST(trace_kernel_rings, runs_follow_their_calls_one_after_the_other) {
  noting_warp warp(0, 0, 0);
  warp.begin(1010, warp_role::worker, 1).end(1100).begin(1105, warp_role::worker, 2).end(1200);
  // The second one was called while the first one ran.
  const traced_operator op = decoded(0, {warp}, {1000, 1020});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const trace_span& span : op.calls)
    if (span.kind == trace_kind::run) runs.emplace_back(span.begin, span.end);
  EXPECT_EQ(runs,
            (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1000, 1100}, {1100, 1200}}));
  // The call of a run in a graph is unknown, so the run begins with its kernels.
  const traced_operator replayed = decoded(0, {warp});
  EXPECT_EQ(replayed.calls.at(1).begin, 1010U);
  EXPECT_EQ(replayed.calls.back().begin, 1105U);
}

TEST(trace_kernel_rings, kernels_beside_each_other_are_a_stage) {
  noting_warp gemm(0, 0, 0);
  gemm.begin(1010, warp_role::producer, 1).end(1100);
  noting_warp beside(0, 0, 0, 1);
  beside.begin(1020, warp_role::sender, 1).end(1110);
  const auto stages_of = [](const traced_operator& op) {
    return std::ranges::count(op.calls, trace_kind::stage, &trace_span::kind);
  };
  EXPECT_EQ(stages_of(decoded(0, {gemm, beside})), 1);
  noting_warp behind(0, 0, 0, 1);
  behind.begin(1100, warp_role::sender, 1).end(1150);
  EXPECT_EQ(stages_of(decoded(0, {gemm, behind})), 2);
  const traced_operator whole = decoded(0, {gemm, behind});
  EXPECT_EQ(whole.kernels.size(), 2U);
  EXPECT_EQ(whole.kernels[1].name, "sender");
}

TEST(trace_kernel_rings, a_run_that_lost_events_is_left_out_and_counted) {
  noting_warp whole(0, 0, 0);
  noting_warp short_of_room(1, 0, 0);
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    const std::uint64_t at = 1000 * epoch;
    whole.begin(at, warp_role::worker, epoch).end(at + 500);
    short_of_room.begin(at, warp_role::worker, epoch).end(at + 400);
  }
  short_of_room.keep(3);
  const traced_operator op = decoded(0, {whole, short_of_room});
  EXPECT_EQ(op.lost, 3U);
  std::vector<std::int64_t> epochs;
  for (const trace_span& span : op.calls)
    if (span.kind == trace_kind::run) epochs.push_back(span.number);
  EXPECT_EQ(epochs, (std::vector<std::int64_t>{3})) << "half of the second one is gone";
  EXPECT_EQ(accounts_of({{op}}).size(), 0U) << "the other rank is not in the record";
}

TEST(trace_kernel_rings, of_several_waits_at_once_the_last_signal_counts) {
  noting_warp waiting(0, 0, 0);
  waiting.begin(1000, warp_role::control, 1);
  waiting.act(1000, 1010, action::copy);
  waiting.wait(1010, 1200, ready, 1, 1).wait(1010, 1200, ready + 1, 1, 1);
  waiting.end(1205);
  noting_warp signalling(0, 0, 1);
  signalling.begin(1000, warp_role::control, 1);
  signalling.signal(1050, 0, ready, 1).signal(1180, 0, ready + 1, 1).end(1190);
  const auto accounts = accounts_of({{decoded(0, {waiting}), decoded(1, {signalling})}});
  const run_account& run = accounts.at(0).runs.at(0);
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::late_peer]), 170);
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::in_flight]), 20);
  EXPECT_EQ(in_ns(run.ranks[0].total()), 205);
}

TEST(trace_kernel_rings, a_wait_within_an_action_is_no_part_of_it) {
  noting_warp warp(0, 0, 0);
  warp.begin(1000, warp_role::worker, 1);
  warp.note(1010, event_word::begin(trace_kind::action, static_cast<int>(action::normalise)));
  warp.wait(1030, 1090, -1, 1, 1);
  warp.note(1100, event_word::end(trace_kind::action)).end(1100);
  noting_warp other(0, 0, 1);
  other.begin(1000, warp_role::worker, 1).end(1100);
  const auto accounts = accounts_of({{decoded(0, {warp}), decoded(1, {other})}});
  const run_account& run = accounts.at(0).runs.at(0);
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::compute]), 30);
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::late_peer]), 60) << "data tell of themselves";
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::idle]), 10);
  EXPECT_EQ(run.unmatched, 1);
}

TEST(trace_kernel_rings, a_late_rank_is_named_for_packets_that_carry_their_signal) {
  noting_warp waiting(0, 0, 0);
  waiting.begin(1010, warp_role::worker, 1);
  waiting.wait(1020, 3120, -1, 1, 1).end(3150);
  noting_warp late(0, 0, 1);
  late.begin(3010, warp_role::worker, 1).act(3010, 3090, action::copy).end(3100);
  const auto accounts = accounts_of({{decoded(0, {waiting}, {1000}), decoded(1, {late}, {3000})}});
  const run_account& run = accounts.at(0).runs.at(0);
  EXPECT_EQ(in_ns(run.path.total()), 2150);
  EXPECT_EQ(in_ns(run.path[trace_part::entry]), 2000);
  EXPECT_EQ(in_ns(run.path[trace_part::late_peer]), 110);
  EXPECT_EQ(in_ns(run.path[trace_part::launch]), 10);
  EXPECT_EQ(accounts[0].causes.front().text(), "skew at entry at rank 1");
}

TEST(trace_kernel_rings, a_late_launch_is_named_for_packets_that_carry_their_signal) {
  noting_warp waiting(0, 0, 0);
  waiting.begin(1010, warp_role::worker, 1);
  waiting.wait(1020, 3120, -1, 1, 1).end(3150);
  noting_warp late(0, 0, 1);
  late.begin(3010, warp_role::worker, 1).act(3010, 3090, action::copy).end(3100);
  const auto accounts = accounts_of({{decoded(0, {waiting}, {1000}), decoded(1, {late}, {1005})}});
  const run_account& run = accounts.at(0).runs.at(0);
  EXPECT_EQ(in_ns(run.path.total()), 2150);
  EXPECT_EQ(in_ns(run.path[trace_part::launch]), 3010 - 1005);
  EXPECT_EQ(in_ns(run.path[trace_part::entry]), 5);
  EXPECT_EQ(accounts[0].causes.front().text(), "launch at rank 1");
}

TEST(trace_kernel_rings, senders_move_except_while_they_wait) {
  noting_warp sends(0, 0, 0);
  sends.begin(1000, warp_role::sender, 1);
  sends.wait(1020, 1050, freed, 1, 1, verb::reserve).signal(1080, 1, ready, 1).end(1100);
  noting_warp has_nothing(0, 1, 0);
  has_nothing.begin(1000, warp_role::sender, 1).end(1100);
  noting_warp other(0, 0, 1);
  other.begin(1000, warp_role::control, 1).signal(1030, 0, freed, 1).end(1100);
  const auto accounts = accounts_of({{decoded(0, {sends, has_nothing}), decoded(1, {other})}});
  const trace_breakdown& mean = accounts.at(0).runs.at(0).ranks.at(0);
  EXPECT_EQ(in_ns(mean[trace_part::movement]), 70 / 2);
  EXPECT_EQ(in_ns(mean[trace_part::late_peer]), 10 / 2);
  EXPECT_EQ(in_ns(mean[trace_part::in_flight]), 20 / 2);
  EXPECT_EQ(in_ns(mean[trace_part::idle]), 100 / 2);
}

TEST(trace_kernel_rings, readers_retire_what_writers_reserve) {
  noting_warp warp(0, 0, 0);
  warp.begin(1000, warp_role::sender, 2)
      .wait(1000, 1050, freed, 1, 1, verb::reserve)
      .signal(1060, 1, ready, 2)
      .signal(1070, 1, freed, 2)
      .end(1100);
  const traced_operator op = decoded(0, {warp});
  std::vector<int> verbs;
  for (const trace_span& span : op.workers.at(0))
    if (span.kind == trace_kind::signal) verbs.push_back(span.what);
  EXPECT_EQ(verbs, (std::vector<int>{static_cast<int>(channel_verb::publish),
                                     static_cast<int>(channel_verb::retire)}));
  for (const trace_span& span : op.workers.at(0)) {
    if (span.kind != trace_kind::signal) continue;
    EXPECT_EQ(span.owner, 1);
  }
}

TEST(trace_kernel_rings, an_epilogue_stores_the_multiplied_tile) {
  noting_warp multiplies(0, 4, 0);
  multiplies.begin(1000, warp_role::multiplier, 1).act(1010, 1060, action::multiply).end(1100);
  noting_warp stores(0, 1, 0);
  stores.begin(1000, warp_role::epilogue, 1).act(1060, 1090, action::copy).end(1100);
  traced_operator op = decoded(0, {multiplies, stores}, {900});
  op.ranks = 1;
  const auto accounts = accounts_of({{op}});
  const run_account& run = accounts.at(0).runs.at(0);
  EXPECT_EQ(in_ns(run.path[trace_part::launch]), 100);
  EXPECT_EQ(in_ns(run.path[trace_part::compute]), 50);
  EXPECT_EQ(in_ns(run.path[trace_part::movement]), 30);
  EXPECT_EQ(in_ns(run.path.total()), 200);
}

}  // namespace
}  // namespace untax::testing
