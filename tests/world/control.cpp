#include <array>
#include <atomic>
#include <thread>

#include "src/flow/words.hpp"
#include "support.hpp"

namespace {

using untax::errc;
using untax::rank_status;
using untax::verb;
using world_test::error_of;
using world_test::expect_error;
using world_test::lone_control;

TEST(control, a_wait_record_comes_back_as_it_was) {
  const lone_control c(2);
  EXPECT_FALSE(c.view.wait_at(1, 5));
  c.view.publish_wait(1, 5, {"all_gather_gemm", verb::acquire, 63, 2147483647, ~std::uint64_t{0}},
                      17, 99);
  auto wait = c.view.wait_at(1, 5);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->operator_name, "all_gather_gemm");
  EXPECT_EQ(wait->what, verb::acquire);
  EXPECT_EQ(wait->peer, 63);
  EXPECT_EQ(wait->room, 2147483647);
  EXPECT_EQ(wait->expected, ~std::uint64_t{0});
  EXPECT_EQ(wait->seen, 17U);
  EXPECT_EQ(wait->since, 99U);
  c.view.publish_wait(1, 5, {std::string(40, 'x'), verb::agree, -1, -1, 1}, 0, 100);
  wait = c.view.wait_at(1, 5);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->operator_name, std::string(32, 'x'));
  EXPECT_EQ(wait->peer, -1);
  EXPECT_EQ(wait->room, -1);
  c.view.clear_wait(1, 5);
  EXPECT_FALSE(c.view.wait_at(1, 5));
  for (const int slot : {0, untax::wait_slots - 1}) {
    c.view.publish_wait(1, slot, {"op", verb::acquire, 0, 1, 2}, 0, 100);
    EXPECT_TRUE(c.view.wait_at(1, slot));
    c.view.clear_wait(1, slot);
    EXPECT_FALSE(c.view.wait_at(1, slot));
  }
  c.view.publish_wait(1, untax::wait_slots, {}, 0, 1);
  c.view.publish_wait(1, -1, {}, 0, 1);
}

TEST(control, has_no_records_outside_the_table) {
  const lone_control c(2);
  // Memory beside the table is not zero.
  for (int slot = 0; slot < untax::wait_slots; ++slot)
    c.view.publish_wait(0, slot, {"op", verb::acquire, 1, 2, 3, 4}, 5, 6);
  for (int from = 0; from < 2; ++from) c.view.arrived(0, from) = 9;
  c.view.arrived(0, untax::max_ranks - 8) = 9;
  for (const int slot : {-1, untax::wait_slots}) {
    EXPECT_FALSE(c.view.wait_at(0, slot));
    c.view.publish_wait(0, slot, {"op", verb::acquire, 1, 2, 30, 40}, 50, 60);
    c.view.update_wait(0, slot, 77);
    c.view.clear_wait(0, slot);
  }
  for (int slot = 0; slot < untax::wait_slots; ++slot) {
    const auto wait = c.view.wait_at(0, slot);
    ASSERT_TRUE(wait);
    EXPECT_EQ(wait->seen, 5U);
    EXPECT_EQ(wait->progress, 4U);
    c.view.update_wait(0, slot, 50);
    EXPECT_EQ(c.view.wait_at(0, slot)->seen, 50U);
  }
}

TEST(control, loaded_texts_have_their_length_and_end_with_a_zero) {
  const std::array<std::uint64_t, 2> words = {~std::uint64_t{0}, ~std::uint64_t{0}};
  for (std::size_t length = 0; length <= 16; ++length) {
    const std::string text = untax::words::load_text(words, length);
    ASSERT_EQ(text.size(), length);
    EXPECT_EQ(text.c_str()[length], '\0') << length;
  }
}

TEST(control, a_wait_record_is_never_seen_half_written) {
  const lone_control c(1);
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    for (std::uint64_t i = 1; !done; ++i) {
      const std::string name(i % 32, static_cast<char>('a' + i % 26));
      c.view.publish_wait(
          0, 0, {name, verb::reserve, static_cast<int>(i % 60), static_cast<int>(i), i}, i, i);
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int intact = 0;
  while (intact < 500 && std::chrono::steady_clock::now() < end && !HasFailure()) {
    const auto wait = c.view.wait_at(0, 0);
    if (!wait) continue;
    ++intact;
    const std::uint64_t i = wait->since;
    EXPECT_EQ(wait->expected, i);
    EXPECT_EQ(wait->seen, i);
    EXPECT_EQ(wait->room, static_cast<int>(i));
    EXPECT_EQ(wait->peer, static_cast<int>(i % 60));
    EXPECT_EQ(wait->operator_name, std::string(i % 32, static_cast<char>('a' + i % 26)));
  }
  done = true;
  EXPECT_EQ(intact, 500);
}

TEST(control, exactly_one_rank_stops_the_world) {
  for (int round = 0; round < 50; ++round) {
    const lone_control c(4);
    std::atomic<int> winners{0};
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < 4; ++rank) {
        threads.emplace_back([&, rank] {
          const std::string text = "because of " + std::to_string(rank);
          if (c.view.stop({rank, rank, errc::timeout, text})) ++winners;
          if (const auto report = c.view.report()) {
            EXPECT_EQ(report->text, "because of " + std::to_string(report->reporter));
          }
        });
      }
    }
    EXPECT_EQ(winners, 1);
    EXPECT_TRUE(c.view.stopped());
  }
}

TEST(control, a_text_without_end_is_cut) {
  const lone_control c(1);
  EXPECT_FALSE(c.view.report());
  EXPECT_TRUE(c.view.stop({0, -1, errc::internal, std::string(100000, 'x')}));
  const auto report = c.view.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->suspect, -1);
  EXPECT_GT(report->text.size(), 4000U);
  EXPECT_EQ(report->text.find_first_not_of('x'), std::string::npos);
}

TEST(control, failures_name_the_reporter_and_keep_its_text) {
  const lone_control c(3);
  const auto failure = [&](int rank) {
    return error_of(
        [&] { untax::throw_failure(c.view, rank, untax::wait_outcome::aborted, "my_op"); });
  };
  expect_error(failure(0), errc::aborted, {"rank 0", "my_op"});
  ASSERT_TRUE(c.view.stop({1, 2, errc::timeout, "rank 2 is slow"}));
  expect_error(failure(1), errc::timeout, {"rank 1: rank 2 is slow"});
  expect_error(failure(0), errc::aborted,
               {"rank 0: my_op stopped because rank 1 reported: rank 2 is slow"});
}

TEST(control, every_rank_reports_a_lost_peer_as_such) {
  const lone_control c(2);
  ASSERT_TRUE(c.view.stop({1, 0, errc::peer_lost, "rank 0 is gone"}));
  for (int rank = 0; rank < 2; ++rank) {
    expect_error(
        error_of([&] { untax::throw_failure(c.view, rank, untax::wait_outcome::aborted); }),
        errc::peer_lost, {"rank 0 is gone"});
  }
}

}  // namespace
