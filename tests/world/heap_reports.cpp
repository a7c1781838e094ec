// The report of a heap, and its advice when it is full.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/symmetric/heap.hpp>

#include "support.hpp"

namespace {

using untax::errc;
using untax::segment;
using untax::symmetric_heap;
using world_test::error_of;
using world_test::expect_error;

constexpr std::size_t unit = 512;

TEST(heap_reports, list_the_eight_largest_labels_by_size) {
  for (const bool guards : {false, true}) {
    const segment memory = segment::anonymous({1, 0, 1 << 20});
    symmetric_heap heap(memory, 0, guards);
    std::string lines;
    for (std::size_t labels = 1; labels <= 10; ++labels) {
      // Two allocations of each label, and the later ones are larger.
      const std::string label = fmt::format("label {}", labels);
      for (const std::size_t units : {labels, 2 * labels})
        (void)heap.allocate<std::byte>(units * unit - (guards ? 64 : 0), label);
      lines =
          fmt::format("\n  {:>12}  {} (2)", untax::format_bytes(3 * labels * unit), label) + lines;
      std::string expected =
          fmt::format("symmetric heap of rank 0: {} of 1 MiB taken, largest hole {}",
                      untax::format_bytes(heap.used()), untax::format_bytes(heap.largest_free()));
      std::size_t end = 0;
      for (std::size_t line = 0; line < std::min<std::size_t>(labels, 8); ++line)
        end = std::min(lines.find('\n', end + 1), lines.size());
      expected += lines.substr(0, end);
      if (labels > 8) expected += fmt::format("\n  and {} others", labels - 8);
      EXPECT_EQ(heap.report(), expected);
      EXPECT_EQ(heap.used() + heap.largest_free(), std::size_t{1} << 20U);
    }
  }
}

// As much as is advised is enough, and a MiB less is not.
TEST(heap_reports, advise_a_sufficient_size) {
  auto random = world_test::random_numbers();
  for (int round = 0; round < 200; ++round) {
    const std::size_t before = random() % 1'000'000;
    const std::size_t wanted = (std::size_t{1} << 20U) + random() % 7'000'000;
    const auto fits = [&](std::size_t megabytes) {
      const segment memory = segment::anonymous({1, 0, megabytes << 20U});
      symmetric_heap heap(memory, 0, true);
      (void)heap.allocate<std::byte>(before, "before");
      const bool present = heap.fits(wanted);
      if (present) {
        EXPECT_TRUE(heap.allocate<std::byte>(wanted, "wanted"));
      }
      return present;
    };
    const segment memory = segment::anonymous({1, 0, 1 << 20});
    symmetric_heap heap(memory, 0, true);
    (void)heap.allocate<std::byte>(before, "before");
    EXPECT_FALSE(heap.fits(wanted));
    const std::string text =
        error_of([&] { (void)heap.allocate<std::byte>(wanted, "wanted"); }).what();
    const std::size_t at = text.find("UNTAX_HEAP_BYTES to ");
    ASSERT_NE(at, std::string::npos) << text;
    const std::size_t advised = std::stoul(text.substr(at + 20));
    EXPECT_TRUE(fits(advised)) << before << " and " << wanted;
    EXPECT_FALSE(fits(advised - 1)) << before << " and " << wanted;
  }
}

TEST(heap_reports, know_the_allocation_at_an_offset) {
  const segment memory = segment::anonymous({1, 0, 1 << 16});
  symmetric_heap heap(memory, 0, false);
  const auto gone = heap.allocate<std::byte>(300, "gone");
  (void)heap.allocate<std::byte>(300, "there");
  heap.free(gone);
  EXPECT_FALSE(heap.use_at(0));
  EXPECT_FALSE(heap.use_at(unit - 1));
  for (const std::size_t inside : {0, 1, 299, 300}) {
    const auto use = heap.use_at(unit + inside);
    ASSERT_TRUE(use) << inside;
    EXPECT_EQ(use->label, "there");
    EXPECT_EQ(use->offset, unit);
    EXPECT_EQ(use->bytes, 300U);
  }
  EXPECT_FALSE(heap.use_at(unit + 301));
  EXPECT_FALSE(heap.use_at(2 * unit));
  EXPECT_FALSE(heap.use_at(1 << 20));
}

// A heap is made of whole units.
TEST(heap_reports, ignore_parts_of_units) {
  for (const std::size_t bytes : {0, 1, 511, 512, 513, 1023, 1024}) {
    const segment memory = segment::anonymous({2, 100, bytes});
    symmetric_heap heap(memory, 1, false);
    const std::size_t whole = bytes / unit * unit;
    EXPECT_EQ(heap.capacity(), whole);
    EXPECT_EQ(heap.largest_free(), whole);
    EXPECT_EQ(heap.used(), 0U);
    expect_error(error_of([&] { (void)heap.allocate<std::byte>(whole + 1, "more"); }),
                 errc::out_of_memory, {"rank 1", "\"more\""});
    if (whole == 0) continue;
    const auto allocation = heap.allocate<std::byte>(whole, "all");
    EXPECT_EQ(allocation.local(), memory.arena(1));
    EXPECT_FALSE(heap.fits(0));
    heap.free(allocation);
    EXPECT_EQ(heap.largest_free(), whole);
  }
}

}  // namespace
