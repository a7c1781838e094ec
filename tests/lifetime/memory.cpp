// Nothing of an operator stays in the symmetric heap when it is gone, however it went.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include <untax/world/launch.hpp>

#include "samples.hpp"
#include "tests/errors.hpp"

namespace untax::testing {
namespace {

template <class Operator>
class memory_of : public ::testing::Test {};
TYPED_TEST_SUITE(memory_of, all_operators);

/// All ranks have ended the same operators; now their memory is free.
void expect_nothing_taken(world& w) {
  w.barrier();
  EXPECT_EQ(w.heap().used(), 0U) << w.heap().report();
  EXPECT_EQ(w.heap().retired(), 0U) << w.heap().report();
}

template <class Operator, class Body>
void for_all_patterns(Body&& body) {
  for (const pattern how : sample<Operator>::patterns()) {
    SCOPED_TRACE(name_of(how));
    run_threads(
        ranks,
        [&](world& w) {
          body(w, how);
          expect_nothing_taken(w);
        },
        small_world());
  }
}

TYPED_TEST(memory_of, an_operator_ends_with_it) {
  using use = sample<TypeParam>;
  for_all_patterns<TypeParam>([](world& w, pattern how) {
    (void)use::make(w, how);
    auto op = use::make(w, how);
    use::run(op);
    use::run(op);
  });
}

TYPED_TEST(memory_of, an_operator_moves_with_the_operator) {
  using use = sample<TypeParam>;
  for_all_patterns<TypeParam>([](world& w, pattern how) {
    auto first = use::make(w, how);
    use::run(first);
    const std::size_t used = w.heap().used();
    auto second = std::move(first);
    EXPECT_EQ(w.heap().retired(), 0U);
    EXPECT_EQ(w.heap().used(), used);
    use::run(second);
  });
}

TYPED_TEST(memory_of, an_operator_ends_when_another_is_moved_onto_it) {
  using use = sample<TypeParam>;
  for_all_patterns<TypeParam>([](world& w, pattern how) {
    auto op = use::make(w, how);
    use::run(op);
    const std::size_t used = w.heap().used();
    for (int i = 0; i < 3; ++i) {
      op = use::make(w, how);
      use::run(op);
    }
    w.barrier();
    EXPECT_EQ(w.heap().used(), used) << w.heap().report();
    auto& same = op;
    op = std::move(same);
    use::run(op);
  });
}

TYPED_TEST(memory_of, an_operator_that_cannot_be_made_is_given_back) {
  using use = sample<TypeParam>;
  for (const pattern how : use::patterns()) {
    // The heap has room for the first allocation, then for two, and so on.
    for (std::size_t heap = 0; heap <= 16 * symmetric_heap::alignment;
         heap += symmetric_heap::alignment) {
      run_threads(
          ranks,
          [&](world& w) {
            try {
              auto op = use::make(w, how);
              use::run(op);
            } catch (const error& e) {
              EXPECT_EQ(e.code(), errc::out_of_memory) << e.what();
            }
            expect_nothing_taken(w);
          },
          small_world(heap));
    }
  }
}

TYPED_TEST(memory_of, an_operator_of_an_unknown_pattern_is_given_back) {
  using use = sample<TypeParam>;
  run_threads(
      ranks,
      [](world& w) {
        EXPECT_THROW((void)use::make(w, pattern::copy_engine), error);
        expect_nothing_taken(w);
      },
      small_world());
}

TYPED_TEST(memory_of, operators_is_free_again_where_ranks_catch_the_same_exception) {
  using use = sample<TypeParam>;
  for_all_patterns<TypeParam>([](world& w, pattern how) {
    try {
      auto op = use::make(w, how);
      use::run(op);
      throw std::runtime_error("all ranks throw it");
    } catch (const std::runtime_error&) {
    }
  });
}

TEST(memory_of_operators, is_reused_when_no_other_memory_is_free) {
  using use = sample<gemm_all_scatter>;
  run_threads(
      ranks,
      [](world& w) {
        std::optional op(use::make(w, pattern::fused_sequential));
        use::run(*op);
        const std::size_t taken = w.heap().used();
        const auto rest = w.allocate<std::byte>(w.heap().largest_free() - 64, "the rest");
        EXPECT_EQ(untax_test::error_of([&] { (void)w.allocate<int>(1, "no room"); }).code(),
                  errc::out_of_memory);
        op.reset();
        EXPECT_EQ(w.heap().used(), w.heap().capacity()) << "it is taken until all ranks have met";
        const auto next = w.allocate<std::byte>(taken - 64, "in its place");
        EXPECT_EQ(w.heap().retired(), 0U);
        w.free(next);
        w.free(rest);
        expect_nothing_taken(w);
      },
      small_world());
}

TEST(memory_of_operators, that_only_some_ranks_have_ended_is_a_disagreement) {
  const error e = untax_test::error_of([] {
    run_threads(
        2,
        [](world& w) {
          std::optional op(sample<all_gather>::make(w, pattern::fused_sequential));
          if (w.rank() == 0) op.reset();
          w.barrier();
          op.reset();
        },
        small_world());
  });
  untax_test::expect_error(
      e, errc::disagreement,
      {"rank 0: barrier, after which all ranks are done with \"all_gather inbox\"",
       "rank 1: barrier\n"});
}

}  // namespace
}  // namespace untax::testing
