#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <untax/rma/atomic.hpp>

#include "random_inputs.hpp"

namespace {

using rma_test::random_inputs;
using untax::memory_order;
using untax::memory_scope;

constexpr int threads = 4;

/// Calls `body(thread)` on four threads at once.
template <class Body>
void on_four_threads(const Body& body) {
  std::vector<std::jthread> team;
  for (int t = 0; t < threads; ++t) team.emplace_back([&body, t] { body(t); });
}

template <class T>
class atomics : public testing::Test {};
using numbers =
    testing::Types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(atomics, numbers);

template <class T>
class integer_atomics : public testing::Test {};
using integers = testing::Types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(integer_atomics, integers);

TYPED_TEST(atomics, return_the_value_before) {
  using T = TypeParam;
  random_inputs random;
  SCOPED_TRACE(random.trace());
  for (const auto order : {memory_order::relaxed, memory_order::acquire, memory_order::release,
                           memory_order::acq_rel}) {
    for (const auto scope : {memory_scope::block, memory_scope::device, memory_scope::system}) {
      const T first = static_cast<T>(random.number(0, 1000));
      const T second = static_cast<T>(random.number(0, 1000));
      T value = first;
      EXPECT_EQ(untax::atomic_add(&value, second, order, scope), first);
      EXPECT_EQ(untax::atomic_sub(&value, second, order, scope), first + second);
      EXPECT_EQ(untax::atomic_min(&value, second, order, scope), first);
      EXPECT_EQ(untax::atomic_max(&value, first, order, scope), std::min(first, second));
      EXPECT_EQ(untax::load(&value, order, scope), std::max(first, std::min(first, second)));
      untax::store(&value, first, order, scope);
      EXPECT_EQ(untax::atomic_exchange(&value, second, order, scope), first);
      EXPECT_EQ(untax::atomic_compare_exchange(&value, second + 1, first, order, scope), second);
      EXPECT_EQ(value, second) << "nothing is written where something else is expected";
      EXPECT_EQ(untax::atomic_compare_exchange(&value, second, first, order, scope), second);
      EXPECT_EQ(value, first);
    }
  }
}

TYPED_TEST(atomics, four_threads_lose_no_update) {
  using T = TypeParam;
  constexpr int rounds = 2000;
  T sum = 0;
  T rest = static_cast<T>(threads * rounds);
  T least = static_cast<T>(threads * rounds);
  T most = 0;
  T claimed = 0;
  std::vector<T> claims(threads * rounds, 0);
  on_four_threads([&](int t) {
    for (int i = 0; i < rounds; ++i) {
      const T mine = static_cast<T>(i * threads + t);
      untax::atomic_add(&sum, 1, memory_order::relaxed);
      untax::atomic_sub(&rest, 1, memory_order::relaxed);
      untax::atomic_min(&least, mine, memory_order::relaxed);
      untax::atomic_max(&most, mine, memory_order::relaxed);
      // A ticket taken by compare-exchange; each is handed out once.
      T ticket = untax::load(&claimed);
      for (T seen = ticket;; ticket = seen) {
        seen = untax::atomic_compare_exchange(&claimed, ticket, ticket + 1, memory_order::relaxed);
        if (seen == ticket) break;
      }
      claims[static_cast<std::size_t>(ticket)] += 1;
    }
  });
  EXPECT_EQ(sum, static_cast<T>(threads * rounds));
  EXPECT_EQ(rest, 0);
  EXPECT_EQ(least, 0);
  EXPECT_EQ(most, static_cast<T>(threads * rounds - 1));
  for (const T claim : claims) ASSERT_EQ(claim, 1);
}

TYPED_TEST(atomics, exchange_hands_each_value_on_once) {
  using T = TypeParam;
  constexpr int rounds = 1000;
  T shared = 0;
  std::vector<std::vector<T>> taken(threads);
  on_four_threads([&](int t) {
    for (int i = 0; i < rounds; ++i) {
      taken[static_cast<std::size_t>(t)].push_back(
          untax::atomic_exchange(&shared, static_cast<T>(1 + i * threads + t)));
    }
  });
  std::vector<int> times(1 + threads * rounds, 0);
  for (const auto& list : taken) {
    for (const T value : list) ++times[static_cast<std::size_t>(value)];
  }
  ++times[static_cast<std::size_t>(shared)];
  for (const int count : times) ASSERT_EQ(count, 1);
}

TYPED_TEST(integer_atomics, four_threads_change_their_own_bits) {
  using T = TypeParam;
  constexpr int rounds = 1000;
  T ored = 0;
  T anded = static_cast<T>(~T{0});
  T xored = 0;
  on_four_threads([&](int t) {
    const T bit = static_cast<T>(T{1} << t);
    for (int i = 0; i < rounds; ++i) {
      const T before = untax::atomic_xor(&xored, bit, memory_order::relaxed);
      EXPECT_EQ((before & bit) != 0, i % 2 != 0);
      untax::atomic_or(&ored, bit, memory_order::relaxed);
      untax::atomic_and(&anded, static_cast<T>(~bit), memory_order::relaxed);
    }
    untax::atomic_xor(&xored, bit, memory_order::relaxed);
  });
  EXPECT_EQ(ored, T{15});
  EXPECT_EQ(anded, static_cast<T>(~T{15}));
  EXPECT_EQ(xored, T{15});
}

TEST(atomics_of_floats, min_and_max_leave_the_value_if_an_operand_is_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  float number = 2;
  untax::atomic_min(&number, nan);
  untax::atomic_max(&number, nan);
  EXPECT_EQ(number, 2.0F);
  float poisoned = nan;
  untax::atomic_min(&poisoned, 1.0F);
  untax::atomic_max(&poisoned, 1.0F);
  EXPECT_TRUE(std::isnan(poisoned));
  EXPECT_TRUE(std::isnan(untax::atomic_compare_exchange(&poisoned, nan, 3.0F)));
  EXPECT_EQ(poisoned, 3.0F) << "bits are compared, so a NaN can be replaced";
}

TEST(atomics_order, acquire_and_release_pass_a_message) {
  // A plain array guarded by a hand-made lock: ThreadSanitizer reports it if one of the orders were
  // missing.
  std::vector<int> data(64, 0);
  std::uint32_t lock = 0;
  on_four_threads([&](int) {
    for (int i = 0; i < 500; ++i) {
      while (untax::atomic_exchange(&lock, 1U, memory_order::acquire) != 0)
        std::this_thread::yield();
      for (int& value : data) ++value;
      untax::store(&lock, 0U, memory_order::release);
    }
  });
  for (const int value : data) ASSERT_EQ(value, threads * 500);
}

TEST(atomics_order, words_of_every_size_are_read_whole) {
  struct alignas(4) pair {
    std::uint16_t a;
    std::uint16_t b;
  };
  pair shared{0, 0};
  on_four_threads([&](int t) {
    for (std::uint16_t i = 0; i < 2000; ++i) {
      if (t == 0) {
        untax::store(&shared, {i, i});
      } else {
        const pair seen = untax::load(&shared);
        ASSERT_EQ(seen.a, seen.b);
      }
    }
  });
}

// x86 hardly tells one order from another, so what the operations ask for is looked at itself.
TEST(atomics_order, equals_the_requested_order) {
  using untax::memory_order;
  struct orders {
    memory_order asked;
    std::memory_order exchanges, loads, stores;
  };
  for (const orders& o : {orders{memory_order::relaxed, std::memory_order_relaxed,
                                 std::memory_order_relaxed, std::memory_order_relaxed},
                          orders{memory_order::acquire, std::memory_order_acquire,
                                 std::memory_order_acquire, std::memory_order_relaxed},
                          orders{memory_order::release, std::memory_order_release,
                                 std::memory_order_relaxed, std::memory_order_release},
                          orders{memory_order::acq_rel, std::memory_order_acq_rel,
                                 std::memory_order_acquire, std::memory_order_release}}) {
    EXPECT_EQ(untax::detail::exchange_order(o.asked), o.exchanges);
    EXPECT_EQ(untax::detail::load_order(o.asked), o.loads);
    EXPECT_EQ(untax::detail::store_order(o.asked), o.stores);
  }
  // A number that names no order, as a caller from another language may pass, is the strictest.
  EXPECT_EQ(untax::detail::exchange_order(static_cast<memory_order>(9)), std::memory_order_acq_rel);
}

}  // namespace
