// Operators and worlds that are moved: what is left behind says so, what was moved works on.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <untax/world/launch.hpp>

#include "samples.hpp"
#include "tests/errors.hpp"

namespace untax::testing {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

template <class Operator>
class moved : public ::testing::Test {};
TYPED_TEST_SUITE(moved, all_operators);

TYPED_TEST(moved, an_operator_leaves_an_object_that_refuses_to_run) {
  using use = sample<TypeParam>;
  run_threads(
      ranks,
      [](world& w) {
        auto first = use::make(w, pattern::fused_sequential);
        auto second = std::move(first);
        // NOLINTNEXTLINE(bugprone-use-after-move): what this is about
        expect_error(error_of([&] { use::run(first); }), errc::invalid_argument,
                     {"rank " + std::to_string(w.rank()), "moved from", "use the object"});
        use::run(second);
        first = std::move(second);
        use::run(first);
      },
      small_world());
}

TYPED_TEST(moved, an_operator_takes_its_explanation_along) {
  using use = sample<TypeParam>;
  run_threads(
      ranks,
      [](world& w) {
        auto first = use::make(w, pattern::fused_sequential);
        const std::string text = first.explain();
        EXPECT_FALSE(text.empty());
        auto second = std::move(first);
        EXPECT_EQ(second.explain(), text);
        first = std::move(second);
        EXPECT_EQ(first.explain(), text);
      },
      small_world());
}

TYPED_TEST(moved, a_world_takes_its_operators_along) {
  using use = sample<TypeParam>;
  std::vector<world> worlds = world::threads(ranks, small_world());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&worlds, rank] {
      worlds[static_cast<std::size_t>(rank)].run([](world& original) {
        auto op = use::make(original, pattern::fused_specialized);
        use::run(op);
        world second = std::move(original);
        use::run(op);
        original = std::move(second);
        use::run(op);
        auto other = use::make(original, pattern::fused_sequential);
        use::run(other);
      });
    });
  }
}

TEST(moved_world, refuses_collective_calls) {
  std::vector<world> worlds = world::threads(1, small_world());
  world& w = worlds.front();
  const world other = std::move(w);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { w.barrier(); }, [&] { w.agree("a", "b"); }, [&] { w.note("a", "b"); },
           [&] { (void)w.allocate<int>(1, "x"); }, [&] { (void)w.heap(); }, [&] { w.check(); },
           [&] { (void)w.stable_view(); }}) {
    expect_error(error_of(call), errc::invalid_argument, {"moved from"});
  }
}

}  // namespace
}  // namespace untax::testing
