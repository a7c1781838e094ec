#include <untax/decoder/pages.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/errors.hpp"

namespace untax_test {
namespace {

using untax::errc;
using untax::page_allocator;

TEST(page_allocator, a_full_cache_changes_nothing) {
  page_allocator pages({.pages = 3, .page_size = 4, .sequences = 2, .tokens = 100});
  const int a = pages.add();
  const int b = pages.add();
  expect_error(error_of([&] { pages.add(); }), errc::out_of_memory, {"2 sequences"});
  pages.extend(std::vector<page_allocator::growth>{{a, 5}});
  const std::vector<page_allocator::growth> both{{a, 3}, {b, 5}};
  expect_error(error_of([&] { pages.extend(both); }), errc::out_of_memory, {"2 more", "1 of 3"});
  EXPECT_EQ(pages.length(a), 5);
  EXPECT_EQ(pages.length(b), 0);
  EXPECT_EQ(pages.free_pages(), 1);
  pages.extend(std::vector<page_allocator::growth>{{a, 3}, {b, 4}});
  EXPECT_EQ(pages.free_pages(), 0);
  const std::vector<page_allocator::growth> twice{{a, 0}, {a, 0}};
  expect_error(error_of([&] { pages.extend(twice); }), errc::invalid_argument, {"once"});
}

TEST(page_allocator, sequences_have_a_longest_length) {
  page_allocator pages({.pages = 9, .page_size = 4, .sequences = 1, .tokens = 6});
  const int a = pages.add();
  const std::vector<page_allocator::growth> more{{a, 7}};
  expect_error(error_of([&] { pages.extend(more); }), errc::out_of_memory, {"up to 6"});
  expect_error(error_of([&] { (void)pages.length(1); }), errc::invalid_argument, {"sequence 1"});
  expect_error(
      error_of([] { page_allocator({.pages = 0, .page_size = 1, .sequences = 1, .tokens = 1}); }),
      errc::invalid_argument, {"between 1"});
}

TEST(page_allocator, a_fork_shares_full_pages_and_copies_the_last) {
  page_allocator pages({.pages = 4, .page_size = 4, .sequences = 3, .tokens = 100});
  const int a = pages.add();
  pages.extend(std::vector<page_allocator::growth>{{a, 6}});
  const auto forked = pages.fork(a);
  ASSERT_TRUE(forked.page);
  EXPECT_EQ(forked.page->from, pages.pages(a)[1]);
  EXPECT_EQ(forked.page->to, pages.pages(forked.sequence)[1]);
  EXPECT_EQ(pages.pages(a)[0], pages.pages(forked.sequence)[0]);
  EXPECT_EQ(pages.free_pages(), 1);
  pages.remove(a);
  EXPECT_EQ(pages.free_pages(), 2);
  pages.extend(std::vector<page_allocator::growth>{{forked.sequence, 2}});
  EXPECT_FALSE(pages.fork(forked.sequence).page);
  pages.remove(forked.sequence);
  EXPECT_EQ(pages.free_pages(), 2);
  EXPECT_FALSE(pages.exists(forked.sequence));
}

/// Random calls: no page is of two sequences but by a fork, and none is lost.
TEST(page_allocator, no_page_is_lost_or_given_twice) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  page_allocator pages({.pages = 40, .page_size = 3, .sequences = 8, .tokens = 50});
  std::vector<int> live;
  for (int call = 0; call < 4000; ++call) {
    try {
      const unsigned what = random() % 4;
      const std::size_t chosen = live.empty() ? 0 : random() % live.size();
      if (what == 0 || live.empty()) {
        live.push_back(pages.add());
      } else if (what == 1) {
        live.push_back(pages.fork(live[chosen]).sequence);
      } else if (what == 2) {
        pages.extend(std::vector<page_allocator::growth>{
            {live[chosen], static_cast<std::int64_t>(random() % 9)}});
      } else {
        pages.remove(live[chosen]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
      }
    } catch (const untax::error& e) {
      ASSERT_EQ(e.code(), errc::out_of_memory);
    }
    std::map<std::int32_t, int> users;
    for (const int s : live) {
      ASSERT_EQ(static_cast<std::int64_t>(pages.pages(s).size()), (pages.length(s) + 2) / 3);
      for (const std::int32_t page : pages.pages(s)) ++users[page];
      // Only full pages are shared.
      if (pages.length(s) % 3 == 0) continue;
      const std::int32_t last = pages.pages(s).back();
      for (const int other : live) {
        if (other == s) continue;
        ASSERT_EQ(std::ranges::count(pages.pages(other), last), 0);
      }
    }
    ASSERT_EQ(static_cast<std::int64_t>(users.size()) + pages.free_pages(), 40);
  }
}

}  // namespace
}  // namespace untax_test
