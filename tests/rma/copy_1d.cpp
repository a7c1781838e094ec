#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/half.hpp>
#include <untax/rma/copy.hpp>

#include "random_inputs.hpp"
#include "team.hpp"

namespace {

using rma_test::random_inputs;
using rma_test::run_team;
using rma_test::team_member;

enum class way { put, get, copy };

template <class G, class T>
void move(way how, const G& group, T* to, const T* from, std::int64_t count) {
  switch (how) {
    case way::put:
      return untax::put(group, to, from, count);
    case way::get:
      return untax::get(group, to, from, count);
    case way::copy:
      return untax::copy(group, to, from, count);
  }
}

template <class T>
class copy_1d : public testing::Test {};

struct triple {
  std::uint8_t bytes[3];
  triple() = default;
  explicit triple(float value)
      : bytes{1, static_cast<std::uint8_t>(static_cast<int>(value) & 0xff), 3} {}
};

template <class T>
bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

using element_types = testing::Types<std::uint8_t, untax::bf16, triple, float, double>;
TYPED_TEST_SUITE(copy_1d, element_types);

TYPED_TEST(copy_1d, moves_the_requested_elements_and_no_others) {
  random_inputs random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 200; ++round) {
    const std::int64_t count = random.number(0, round % 10 == 0 ? 20'000 : 70);
    const std::int64_t to_offset = random.number(0, 9);
    const std::int64_t from_offset = random.number(0, 9);
    const auto from = random.values<TypeParam>(count + from_offset);
    const auto before = random.values<TypeParam>(count + to_offset + 5);
    auto to = before;
    move(static_cast<way>(round % 3), untax::lone_thread(), to.data() + to_offset,
         from.data() + from_offset, count);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i) - to_offset;
      const bool inside = at >= 0 && at < count;
      const TypeParam& wanted =
          inside ? from[static_cast<std::size_t>(at + from_offset)] : before[i];
      ASSERT_TRUE(same(to[i], wanted))
          << "element " << i << ", count " << count << ", offset " << to_offset;
    }
  }
}

TYPED_TEST(copy_1d, deals_the_elements_to_the_threads_of_a_group) {
  random_inputs random;
  SCOPED_TRACE(random.trace());
  for (int threads = 1; threads <= 4; ++threads) {
    // Also fewer elements than threads.
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{3}, random.number(100, 5000)}) {
      const auto from = random.values<TypeParam>(count);
      std::vector<TypeParam> to(from.size());
      run_team(threads, [&](const team_member& member) {
        untax::put(member, to.data(), from.data(), count);
        // The group is done when the verb returns, so every thread may look at all of it.
        for (std::size_t i = 0; i < to.size(); ++i) EXPECT_TRUE(same(to[i], from[i])) << i;
      });
    }
  }
}

TEST(copy_1d_shares, cover_every_element_once) {
  struct fake {
    using memory = untax::host_memory;
    int rank;
    int threads;
    [[nodiscard]] int thread_rank() const { return rank; }
    [[nodiscard]] int size() const { return threads; }
    void sync() const {}
  };
  for (int threads = 1; threads <= 9; ++threads) {
    for (std::int64_t count = 0; count <= 40; ++count) {
      std::int64_t next = 0;
      for (int rank = 0; rank < threads; ++rank) {
        const auto share = untax::detail::share_of(fake{rank, threads}, count);
        ASSERT_EQ(share.begin, next);
        ASSERT_LE(share.end - share.begin, count / threads + 1);
        next = share.end;
      }
      ASSERT_EQ(next, count);
    }
  }
}

}  // namespace
