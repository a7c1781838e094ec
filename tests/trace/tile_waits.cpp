// Waits are attributed to the warps that multiply: rings written by hand, with known results.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include <untax/trace/account.hpp>
#include <untax/trace/json.hpp>

#include "kernel_rings.hpp"

namespace untax::testing {
namespace {

TEST(trace_tile_waits, multipliers_get_the_wait_of_their_producer_within_a_tile) {
  const auto multiplier = [](int block) { return noting_warp(block, 4, 0); };
  noting_warp usual = multiplier(0);
  usual.begin(1000, warp_role::multiplier, 1).act(1000, 1100, action::multiply).end(1100);
  noting_warp again = usual;
  noting_warp struck = multiplier(1);
  struck.begin(1000, warp_role::multiplier, 1).act(1000, 4100, action::multiply).end(4110);
  noting_warp other = multiplier(2);
  other.begin(1000, warp_role::multiplier, 1).act(1000, 1100, action::multiply).end(1100);
  noting_warp producer(1, 0, 0);
  producer.begin(1000, warp_role::producer, 1).wait(1050, 4060, ready, 1, 1).end(4080);
  // This one has waited for a tile that comes later.
  noting_warp ahead(2, 0, 0);
  ahead.begin(1000, warp_role::producer, 1).wait(1010, 1200, ready, 1, 1).end(1210);
  noting_warp peer(0, 0, 1);
  peer.begin(1000, warp_role::sender, 1).signal(4000, 0, ready, 1).end(4010);
  const auto accounts = accounts_of(
      {{decoded(0, {usual, again, struck, other, producer, ahead}), decoded(1, {peer})}});
  const run_account& run = accounts.at(0).runs.at(0);
  // 3000 of the tile are more than usual; the signal came 60 before the end of the wait.
  EXPECT_EQ(in_ns(run.path[trace_part::in_flight]), 60);
  EXPECT_EQ(in_ns(run.path[trace_part::compute]), 40);
  const auto flight = std::ranges::find(run.pieces, trace_part::in_flight, &path_piece::part);
  ASSERT_NE(flight, run.pieces.end());
  EXPECT_EQ(flight->peer, 1);
  EXPECT_EQ(in_ns(run.ranks[0][trace_part::compute]), std::lround(4 * 100 / 6.0));
  for (const trace_breakdown& rank : run.ranks) EXPECT_EQ(in_ns(rank.total()), in_ns(run.wall()));
}

/// Two blocks of a cluster, of which one waits for what it reads for both: the other one ends last.
/// `first`: when it begins to multiply.
run_account struck_cluster(std::uint64_t first) {
  const auto multiplier = [](int block) {
    noting_warp warp(block, 4, 0);
    return warp.begin(1000, warp_role::multiplier, 1, 0, 2);
  };
  noting_warp usual = multiplier(2);
  usual.act(1000, 1100, action::multiply).end(1100);
  noting_warp again = multiplier(3);
  again.act(1000, 1100, action::multiply).end(1100);
  noting_warp waits = multiplier(0);
  waits.act(4061, 4150, action::multiply).end(4155);
  noting_warp beside = multiplier(1);
  beside.act(first, 4151, action::multiply).end(4160);
  noting_warp poller(0, 3, 0);
  poller.begin(1000, warp_role::poller, 1, 0, 2);
  // Behind the long one there is a short one, for the next tile.
  poller.wait(1010, 4060, ready, 1, 1).wait(4065, 4068, ready + 1, 1, 1).end(4080);
  noting_warp poller_beside(1, 3, 0);
  poller_beside.begin(1000, warp_role::poller, 1, 0, 2).wait(1002, 1008, ready + 2, 1, 1).end(4080);
  noting_warp peer(0, 0, 1);
  peer.begin(1000, warp_role::sender, 1).signal(1001, 0, ready + 2, 1).signal(1005, 0, ready, 1);
  peer.signal(4066, 0, ready + 1, 1).end(4070);
  const trace_record record{
      {decoded(0, {usual, again, waits, beside, poller, poller_beside}), decoded(1, {peer})}};
  const auto accounts = accounts_of(record);
  EXPECT_EQ(accounts_of(trace_from_json(to_trace_json(record))).at(0).path, accounts.at(0).path);
  return accounts.at(0).runs.at(0);
}

TEST(trace_tile_waits, blocks_of_a_cluster_get_the_wait_of_its_reading_block) {
  // It multiplies from when what it reads itself was there; or nothing was there before.
  for (const std::uint64_t first : {1020, 4062}) {
    const run_account run = struck_cluster(first);
    const auto worst = std::ranges::max(
        run.pieces, {}, [](const path_piece& piece) { return piece.end - piece.begin; });
    EXPECT_EQ(worst.part, trace_part::in_flight) << name_of(worst.part);
    EXPECT_EQ(worst.peer, 1);
    EXPECT_GT(in_ns(run.path[trace_part::in_flight]), 2900);
    EXPECT_EQ(in_ns(run.path.total()), in_ns(run.wall()));
  }
}

}  // namespace
}  // namespace untax::testing
