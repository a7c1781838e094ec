// Operators and memory that ranks give back at different times.
#include <cstddef>

#include "support.hpp"

namespace {

using namespace c_test;

untax_operator* sum_of(untax_world* world, std::int64_t count) {
  const untax_all_reduce_problem problem{sizeof problem, count, untax_f32, untax_sum};
  untax_operator* op = nullptr;
  EXPECT_OK(untax_all_reduce_plan(world, &problem, nullptr, &op));
  return op;
}

TEST(c_dropped, ranks_may_drop_an_operator_at_different_times) {
  run_ranks(2, [](untax_world* world, int rank) {
    untax_operator* op = sum_of(world, 1000);
    if (rank == 0) {
      EXPECT_OK(untax_operator_drop(op));
    }
    EXPECT_OK(untax_world_barrier(world));
    if (rank == 1) {
      EXPECT_OK(untax_operator_drop(op));
    }
    EXPECT_OK(untax_world_barrier(world));
    // Most of the heap, again and again: it is free when the last rank has dropped its operator.
    for (int i = 0; i < 20; ++i) {
      op = sum_of(world, 500'000);
      EXPECT_OK(untax_operator_drop(op));
    }
  });
}

TEST(c_dropped, an_object_that_only_one_rank_drops_ends_with_the_world) {
  run_ranks(2, [](untax_world* world, int rank) {
    untax_operator* op = sum_of(world, 100);
    if (rank == 0) {
      EXPECT_OK(untax_operator_drop(op));
    }
    EXPECT_OK(untax_world_barrier(world));
    if (rank == 1) {
      expect_failure(untax_world_destroy(world), untax_invalid_argument, {"1 operators are left"});
      EXPECT_OK(untax_operator_drop(op));
    }
  });
}

TEST(c_dropped, memory_is_free_when_all_ranks_have_dropped_it) {
  run_ranks(2, [](untax_world* world, int rank) {
    void* most = nullptr;
    constexpr std::size_t bytes = std::size_t{10} << 20U;
    EXPECT_OK(untax_world_allocate(world, bytes, "most", &most));
    if (rank == 0) {
      EXPECT_OK(untax_world_drop(world, most));
    }
    void* more = nullptr;
    EXPECT_EQ(untax_world_allocate(world, bytes, "more", &more), untax_out_of_memory);
    if (rank == 1) {
      EXPECT_OK(untax_world_drop(world, most));
    }
    EXPECT_OK(untax_world_allocate(world, bytes, "more", &more));
    EXPECT_EQ(more, most);
    expect_failure(untax_world_drop(world, static_cast<char*>(most) + 1), untax_invalid_argument,
                   {"was not given by untax_world_allocate, or is free already"});
  });
}

TEST(c_dropped, a_mapping_outlives_its_world) {
  untax_mapping* mapping = nullptr;
  int* number = nullptr;
  run_ranks(1, [&](untax_world* world, int) {
    void* memory = nullptr;
    EXPECT_OK(untax_world_allocate(world, sizeof *number, "a number", &memory));
    number = static_cast<int*>(memory);
    *number = 42;
    EXPECT_OK(untax_world_map(world, &mapping));
  });
  EXPECT_EQ(*number, 42);
  untax_mapping_release(mapping);
  untax_mapping_release(nullptr);
}

TEST(c_dropped, null_is_accepted) {
  EXPECT_OK(untax_operator_drop(nullptr));
  expect_failure(untax_world_drop(nullptr, nullptr), untax_invalid_argument, {"world is NULL"});
  EXPECT_EQ(untax_stream_is_captured(nullptr), 0);
}

}  // namespace
