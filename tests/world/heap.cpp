#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <untax/symmetric/heap.hpp>

#include "support.hpp"

namespace {

using untax::errc;
using untax::segment;
using untax::symmetric;
using untax::symmetric_heap;
using world_test::error_of;
using world_test::expect_error;

constexpr std::size_t capacity = 64 * 1024;

segment memory_of(int ranks) { return segment::anonymous({ranks, 0, capacity}); }

/// The reference of a first-fit heap: a map of 512-byte units.
class model_heap {
 public:
  /// The offset, or -1 if there is no room.
  std::ptrdiff_t allocate(std::size_t bytes, bool guards) {
    const std::size_t units = (std::max<std::size_t>(bytes, 1) + (guards ? 64 : 0) + 511) / 512;
    for (std::size_t start = 0; start + units <= taken_.size(); ++start) {
      const auto begin = taken_.begin() + static_cast<std::ptrdiff_t>(start);
      if (std::none_of(begin, begin + static_cast<std::ptrdiff_t>(units),
                       [](bool t) { return t; })) {
        std::fill_n(begin, units, true);
        sizes_[start * 512] = units;
        return static_cast<std::ptrdiff_t>(start * 512);
      }
    }
    return -1;
  }
  void free(std::size_t offset) {
    std::fill_n(taken_.begin() + static_cast<std::ptrdiff_t>(offset / 512), sizes_.at(offset),
                false);
    sizes_.erase(offset);
  }
  [[nodiscard]] std::size_t used() const {
    return static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), true)) * 512;
  }

 private:
  std::vector<bool> taken_ = std::vector<bool>(capacity / 512);
  std::map<std::size_t, std::size_t> sizes_;
};

class heap_property : public testing::TestWithParam<bool> {};

TEST_P(heap_property, behaves_like_the_model_and_alike_at_every_rank) {
  auto random = world_test::random_numbers();
  const bool guards = GetParam();
  for (int round = 0; round < 20; ++round) {
    const segment memory = memory_of(2);
    symmetric_heap heap(memory, 0, guards);
    symmetric_heap twin(memory, 1, guards);
    model_heap model;
    std::vector<symmetric<std::byte>> live;
    std::vector<symmetric<std::byte>> live_twin;
    for (int step = 0; step < 300; ++step) {
      if (live.empty() || random() % 5 < 3) {
        // Nothing at all, and what just fills a unit or needs another one, with guards and without.
        constexpr std::array<std::size_t, 7> edges = {0, 1, 448, 449, 512, 513, 960};
        const std::size_t bytes = random() % 4 == 0 ? edges[random() % edges.size()]
                                                    : random() % (random() % 4 == 0 ? 20000 : 2000);
        const std::ptrdiff_t expected = model.allocate(bytes, guards);
        if (expected < 0) {
          EXPECT_EQ(error_of([&] { (void)heap.allocate<std::byte>(bytes, "x"); }).code(),
                    errc::out_of_memory);
          EXPECT_EQ(error_of([&] { (void)twin.allocate<std::byte>(bytes, "x"); }).code(),
                    errc::out_of_memory);
          continue;
        }
        live.push_back(heap.allocate<std::byte>(bytes, "x"));
        live_twin.push_back(twin.allocate<std::byte>(bytes, "x"));
        ASSERT_EQ(live.back().local(), memory.arena(0) + expected);
        ASSERT_EQ(live_twin.back().local(), memory.arena(1) + expected);
        ASSERT_EQ(live.back().at(1), live_twin.back().local());
        // Nothing that is written inside may look like damage.
        std::memset(live.back().local(), static_cast<int>(random() % 256), bytes);
      } else {
        const auto victim = static_cast<std::ptrdiff_t>(random() % live.size());
        model.free(static_cast<std::size_t>(live[static_cast<std::size_t>(victim)].local() -
                                            memory.arena(0)));
        heap.free(live[static_cast<std::size_t>(victim)]);
        twin.free(live_twin[static_cast<std::size_t>(victim)]);
        live.erase(live.begin() + victim);
        live_twin.erase(live_twin.begin() + victim);
      }
      ASSERT_EQ(heap.used(), model.used());
      heap.check();
    }
    for (const auto& l : live) heap.free(l);
    EXPECT_EQ(heap.used(), 0U);
    EXPECT_EQ(heap.largest_free(), capacity);
  }
}

INSTANTIATE_TEST_SUITE_P(guards, heap_property, testing::Bool());

TEST(heap, out_of_memory_lists_allocations_and_the_variable_to_raise) {
  const segment memory = memory_of(1);
  symmetric_heap heap(memory, 0, false);
  const auto inbox = heap.allocate<float>(8192, "inbox of op");
  (void)heap.allocate<float>(1000, "counters");
  (void)heap.allocate<float>(1000, "counters");
  expect_error(error_of([&] { (void)heap.allocate<float>(8192, "outbox of op"); }),
               errc::out_of_memory,
               {"rank 0", "32 KiB for \"outbox of op\"", "UNTAX_HEAP_BYTES", "1M", "inbox of op",
                "counters (2)", "40 KiB of 64 KiB"});
  heap.free(inbox);
  EXPECT_TRUE(heap.allocate<float>(8192, "outbox of op"));
  expect_error(error_of([&] { (void)heap.allocate<double>(std::size_t{1} << 62U, "wide"); }),
               errc::out_of_memory, {"wide", "cannot be addressed"});
}

TEST(heap, sizes_that_no_heap_can_have_get_no_advice) {
  for (const bool guards : {false, true}) {
    const segment memory = memory_of(2);
    symmetric_heap heap(memory, 0, guards);
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    for (const std::size_t bytes : {most, most - 1, most - 575, most / 2, most / 4}) {
      const auto e = error_of([&] { (void)heap.allocate<std::byte>(bytes, "huge"); });
      expect_error(
          e, errc::out_of_memory,
          {"rank 0", std::to_string(bytes) + " bytes for \"huge\"", "cannot be addressed"});
      EXPECT_EQ(std::string(e.what()).find("raise"), std::string::npos) << e.what();
    }
    expect_error(error_of([&] { (void)heap.allocate<std::byte>(most / 8, "large"); }),
                 errc::out_of_memory, {"raise UNTAX_HEAP_BYTES to 21990232555"});
  }
}

TEST(heap, suggests_a_size_that_is_enough) {
  const segment memory = memory_of(1);
  symmetric_heap heap(memory, 0, true);
  (void)heap.allocate<std::byte>(60000, "a");
  const std::string text = error_of([&] { (void)heap.allocate<std::byte>(5 << 20, "b"); }).what();
  const std::size_t at = text.find("UNTAX_HEAP_BYTES to ");
  ASSERT_NE(at, std::string::npos) << text;
  const std::size_t megabytes = std::stoul(text.substr(at + 20));
  const segment larger = segment::anonymous({1, 0, megabytes << 20U});
  symmetric_heap again(larger, 0, true);
  (void)again.allocate<std::byte>(60000, "a");
  EXPECT_TRUE(again.allocate<std::byte>(5 << 20, "b"));
}

TEST(heap, refuses_to_free_foreign_memory) {
  const segment memory = memory_of(2);
  symmetric_heap heap(memory, 0, false);
  const auto a = heap.allocate<int>(10, "a");
  const int elsewhere = 0;
  EXPECT_EQ(error_of([&] { heap.free_bytes(&elsewhere); }).code(), errc::invalid_argument);
  EXPECT_EQ(error_of([&] { heap.free_bytes(nullptr); }).code(), errc::invalid_argument);
  EXPECT_EQ(error_of([&] { heap.free_bytes(a.local(1)); }).code(), errc::invalid_argument);
  EXPECT_EQ(error_of([&] { heap.free_bytes(a.at(1)); }).code(), errc::invalid_argument);
  heap.free(a);
  expect_error(error_of([&] { heap.free(a); }), errc::invalid_argument,
               {"rank 0", "freed already"});
}

TEST(heap, retired_memory_stays_allocated_until_it_is_reclaimed) {
  for (const bool guards : {false, true}) {
    const segment memory = memory_of(1);
    symmetric_heap heap(memory, 0, guards);
    std::vector<symmetric<std::byte>> all;
    for (int i = 0; i < 6; ++i)
      all.push_back(heap.allocate<std::byte>(400, "part " + std::to_string(i)));
    const std::size_t used = heap.used();
    for (const int i : {4, 1, 2, 5}) heap.retire_bytes(all[static_cast<std::size_t>(i)].local());
    heap.retire_bytes(all[1].local());  // again
    heap.retire_bytes(nullptr);
    heap.retire_bytes(all[0].local(1));
    EXPECT_EQ(heap.used(), used);
    EXPECT_EQ(heap.retired(), used / 6 * 4);
    EXPECT_EQ(heap.uses().size(), 6U);
    EXPECT_TRUE(heap.retired_text().starts_with("\"part 1\" (400 bytes at offset "));
    EXPECT_NE(heap.report().find("free again when all ranks have met"), std::string::npos);
    EXPECT_EQ(error_of([&] { heap.free(all[1]); }).code(), errc::invalid_argument);
    EXPECT_GT(heap.allocate<std::byte>(400, "elsewhere").local(), all[5].local());
    heap.reclaim();
    EXPECT_EQ(heap.retired(), 0U);
    EXPECT_EQ(heap.retired_text(), "");
    EXPECT_EQ(heap.used(), used / 6 * 3);
    EXPECT_EQ(heap.allocate<std::byte>(800, "in their place").local(), all[1].local());
    EXPECT_EQ(heap.allocate<std::byte>(800, "in their place").local(), all[4].local());
  }
}

TEST(heap, guards_of_retired_memory_are_checked_before_it_is_reclaimed) {
  const segment memory = memory_of(1);
  symmetric_heap heap(memory, 0, true);
  const auto broken = heap.allocate<std::byte>(300, "the culprit");
  *broken.local(300) ^= std::byte{1};
  heap.retire_bytes(broken.local());
  expect_error(error_of([&] { heap.check_retired(); }), errc::internal, {"\"the culprit\""});
}

TEST(heap, guards_notice_a_write_past_the_end) {
  const segment memory = memory_of(1);
  for (const std::size_t past : {0U, 1U, 63U}) {
    symmetric_heap heap(memory, 0, true);
    const auto before = heap.allocate<std::byte>(100, "before");
    const auto broken = heap.allocate<std::byte>(300, "the culprit");
    heap.check();
    *broken.local(300 + past) ^= std::byte{1};
    expect_error(error_of([&] { heap.check(); }), errc::internal,
                 {"\"the culprit\"", "300 bytes", "byte " + std::to_string(300 + past)});
    heap.free(before);
    EXPECT_EQ(error_of([&] { heap.free(broken); }).code(), errc::internal);
  }
}

TEST(heap, without_guards_uses_every_byte) {
  const segment memory = memory_of(1);
  symmetric_heap heap(memory, 0, false);
  EXPECT_EQ(heap.allocate<std::byte>(capacity, "all").size(), capacity);
  EXPECT_EQ(heap.largest_free(), 0U);
  EXPECT_EQ(heap.uses().at(0).label, "all");
}

TEST(heap, calls_its_observer_before_every_change) {
  const segment memory = memory_of(1);
  std::vector<std::string> calls;
  symmetric_heap heap(memory, 0, false, [&](std::string_view call) {
    calls.emplace_back(call);
    if (calls.size() == 3) throw untax::error(errc::disagreement, "no");
  });
  const auto a = heap.allocate<int>(4, "a");
  heap.free(a);
  EXPECT_THROW((void)heap.allocate<int>(8, "b"), untax::error);
  EXPECT_EQ(heap.used(), 0U);
  EXPECT_EQ(calls, (std::vector<std::string>{"allocate 16 bytes for \"a\"", "free \"a\" (16 bytes)",
                                             "allocate 32 bytes for \"b\""}));
}

TEST(heap, says_whether_it_has_guards) {
  const segment memory = segment::anonymous({1, 0, 1 << 16});
  EXPECT_TRUE(symmetric_heap(memory, 0, true).guarded());
  EXPECT_FALSE(symmetric_heap(memory, 0, false).guarded());
}

}  // namespace
