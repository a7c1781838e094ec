#include <unistd.h>

#include <array>
#include <csignal>
#include <limits>

#include <untax/symmetric/segment.hpp>
#include <untax/symmetric/symmetric.hpp>

#include "support.hpp"

namespace {

using untax::errc;
using untax::segment;
using untax::symmetric;
using world_test::error_of;
using world_test::expect_error;

TEST(segment, starts_zero_and_translates_between_ranks) {
  const segment s = segment::anonymous({3, 100, 10000});
  for (int rank = 0; rank < 3; ++rank) {
    for (std::size_t i = 0; i < 10000; ++i) ASSERT_EQ(s.arena(rank)[i], std::byte{0});
  }
  std::byte* const mine = s.arena(1) + 123;
  EXPECT_EQ(s.translate(mine, 1), mine);
  EXPECT_EQ(s.translate(mine, 0), s.arena(0) + 123);
  EXPECT_EQ(s.translate(s.translate(mine, 2), 1), mine);
}

TEST(segment, takes_host_memory_for_arenas_that_lie_there) {
  untax::segment_layout layout{3, 100, 10000};
  EXPECT_EQ(layout.total(), layout.control_span() + 3 * layout.arena_span());
  layout.memory = untax::memory_kind::cuda;
  EXPECT_EQ(layout.total(), layout.control_span());
}

TEST(segment, knows_the_owner_of_an_address) {
  const segment s = segment::anonymous({2, 100, 10000});
  EXPECT_EQ(s.owner_of(s.arena(0)), 0);
  EXPECT_EQ(s.owner_of(s.arena(0) + 9999), 0);
  EXPECT_EQ(s.owner_of(s.arena(1)), 1);
  EXPECT_EQ(s.owner_of(s.arena(1), 10000), 1);
  EXPECT_EQ(s.owner_of(s.arena(1), 10001), -1) << "past the end";
  EXPECT_EQ(s.owner_of(s.arena(0) + 9999, 2), -1) << "past the end";
  EXPECT_EQ(s.owner_of(s.arena(1) + 10000), -1);
  EXPECT_EQ(s.owner_of(s.control()), -1);
  EXPECT_EQ(s.owner_of(s.arena(0), std::numeric_limits<std::size_t>::max()), -1);
  const int elsewhere = 0;
  EXPECT_EQ(s.owner_of(&elsewhere), -1);
  EXPECT_EQ(s.owner_of(nullptr), -1);
}

TEST(segment, refuses_memory_that_is_not_symmetric) {
  const segment s = segment::anonymous({2, 100, 10000});
  const int elsewhere = 0;
  expect_error(error_of([&] { (void)s.translate(&elsewhere, 1); }), errc::not_symmetric,
               {"world::allocate"});
  expect_error(error_of([&] { (void)s.translate(s.arena(0), 2); }), errc::invalid_argument,
               {"no rank 2", "0 to 1"});
  EXPECT_FALSE(s.reachable(2));
  EXPECT_FALSE(s.reachable(-1));
}

TEST(segment, refuses_more_than_can_be_addressed) {
  const auto huge = std::numeric_limits<std::size_t>::max() / 2;
  expect_error(error_of([&] {
                 (void)segment::anonymous({2, 100, huge});
               }),
               errc::out_of_memory, {"UNTAX_HEAP_BYTES"});
  expect_error(error_of([] {
                 (void)segment::anonymous({2, 100, std::size_t{1} << 60U});
               }),
               errc::out_of_memory, {"UNTAX_HEAP_BYTES", "2 ranks"});
}

// A segment slightly smaller than the address space fails with the system's refusal.
TEST(segment, reports_the_addressable_bytes) {
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  for (const std::size_t ranks : {1, 2, 5}) {
    for (const std::size_t control : {0, 1, 4096, 4097}) {
      const std::size_t pages = (control + 4095) / 4096 * 4096;
      const std::size_t rounding = 4096 + untax::segment_layout::stop_bytes;
      const std::size_t edge = (most - pages) / ranks - rounding;
      const auto text_for = [&](std::size_t bytes) -> std::string {
        return error_of([&] {
                 (void)segment::anonymous({static_cast<int>(ranks), control, bytes});
               })
            .what();
      };
      EXPECT_NE(text_for(edge + 1).find("more than can be addressed"), std::string::npos);
      EXPECT_NE(text_for(edge).find("cannot map"), std::string::npos) << text_for(edge);
    }
  }
}

TEST(segment, is_shared_through_its_descriptor) {
  const untax::segment_layout layout{2, 100, 10000};
  segment mine = segment::shareable(layout);
  const segment theirs = segment::attach(dup(mine.descriptor()), layout);
  mine.arena(1)[7] = std::byte{42};
  EXPECT_EQ(theirs.arena(1)[7], std::byte{42});
  EXPECT_NE(mine.arena(1), theirs.arena(1));
  EXPECT_NE(ftruncate(mine.descriptor(), 0), 0) << "a peer could take the memory away";
  expect_error(error_of([&] {
                 (void)segment::attach(dup(mine.descriptor()), {3, 100, 10000});
               }),
               errc::invalid_argument, {"bytes"});
  mine.close_descriptor();
  EXPECT_EQ(mine.descriptor(), -1);
  EXPECT_EQ(mine.arena(1)[7], std::byte{42});
}

// A signal is kept away while a file gets its size, and no longer.
TEST(segment, leaves_signals_as_they_were) {
  const auto hears = [] {
    sigset_t mask;
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
    return std::array{sigismember(&mask, SIGXFSZ), sigismember(&mask, SIGUSR1)};
  };
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGUSR1);
  sigset_t before;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &usual, &before), 0);
  (void)segment::shareable({2, 100, 10000});
  EXPECT_EQ(hears(), (std::array{0, 1}));
  sigaddset(&usual, SIGXFSZ);
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &usual, nullptr), 0);
  (void)segment::shareable({2, 100, 10000});
  EXPECT_EQ(hears(), (std::array{1, 1}));
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

TEST(segment, handles_reach_every_copy) {
  struct three {
    std::array<char, 3> bytes;
  };
  const segment s = segment::anonymous({3, 100, 10000});
  const symmetric<three> a(reinterpret_cast<three*>(s.arena(1)), 5, 1, s.layout().arena_span());
  for (int peer = 0; peer < 3; ++peer) {
    EXPECT_EQ(static_cast<void*>(a.at(peer, 2)), s.arena(peer) + 6);
  }
  EXPECT_EQ(a.local(4), a.at(1, 4));
  EXPECT_EQ(a.size_bytes(), 15U);
  EXPECT_TRUE(a);
  EXPECT_FALSE(symmetric<int>());
}

}  // namespace
