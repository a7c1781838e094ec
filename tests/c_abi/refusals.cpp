// Errors of the ABI for wrong arguments, and at ranks whose peers fail.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support.hpp"
#include "tests/slower_build.hpp"

namespace {

using namespace c_test;

untax_all_reduce_problem sum_of(std::int64_t count) {
  return {sizeof(untax_all_reduce_problem), count, untax_f32, untax_sum};
}

TEST(c_refusals, null_is_refused_only_for_required_arguments) {
  EXPECT_OK(untax_world_destroy(nullptr));
  EXPECT_OK(untax_operator_destroy(nullptr));
  EXPECT_EQ(untax_world_rank(nullptr), -1);
  EXPECT_EQ(untax_world_ranks_per_gpu(nullptr), -1);
  EXPECT_EQ(untax_world_heap_used(nullptr), -1);
  EXPECT_EQ(untax_operator_pattern(nullptr), -1);
  expect_failure(untax_world_threads(2, nullptr, nullptr), untax_invalid_argument,
                 {"worlds is NULL"});
  expect_failure(untax_world_barrier(nullptr), untax_invalid_argument, {"world is NULL"});
  expect_failure(untax_world_let_runs_follow(nullptr, nullptr), untax_invalid_argument,
                 {"world is NULL"});
  expect_failure(untax_all_reduce_run(nullptr, nullptr, nullptr, nullptr), untax_invalid_argument,
                 {"op is NULL"});
  expect_failure(untax_world_from_exchange(0, 2, nullptr, nullptr, nullptr, nullptr),
                 untax_invalid_argument, {"exchange is NULL"});
}

TEST(c_refusals, status_names_equal_those_of_the_library) {
  EXPECT_STREQ(untax_version(), "0.2.0");
  EXPECT_EQ(untax_abi_version(), UNTAX_ABI_VERSION);
  EXPECT_STREQ(untax_status_name(untax_ok), "ok");
  EXPECT_STREQ(untax_status_name(untax_peer_lost), "peer_lost");
  EXPECT_STREQ(untax_status_name(untax_internal), "internal");
  EXPECT_STREQ(untax_status_name(untax_internal + 1), "?");
  EXPECT_STREQ(untax_status_name(-1), "?");
}

TEST(c_refusals, a_world_of_no_ranks_is_refused_with_its_number) {
  untax_world* world = nullptr;
  expect_failure(untax_world_threads(0, nullptr, &world), untax_invalid_argument, {"0 ranks"});
  EXPECT_EQ(world, nullptr);
}

TEST(c_refusals, structures_carry_their_size) {
  run_ranks(1, [](untax_world* world, int) {
    untax_operator* op = nullptr;
    auto problem = sum_of(4);
    problem.size = 0;
    expect_failure(untax_all_reduce_plan(world, &problem, nullptr, &op), untax_invalid_argument,
                   {"size of untax_all_reduce_problem is 0"});
    // An older caller, whose structure ends before the reduction: what it does not know is zero.
    problem = sum_of(4);
    problem.reduction = 77;
    problem.size = offsetof(untax_all_reduce_problem, reduction);
    EXPECT_OK(untax_all_reduce_plan(world, &problem, nullptr, &op));
    EXPECT_OK(untax_operator_destroy(op));
    // A newer one may be served as long as it does not ask for what is new.
    struct newer {
      untax_all_reduce_problem known;
      std::int64_t more;
    } late{sum_of(4), 0};
    late.known.size = sizeof late;
    EXPECT_OK(untax_all_reduce_plan(world, &late.known, nullptr, &op));
    EXPECT_OK(untax_operator_destroy(op));
    late.more = 1;
    expect_failure(untax_all_reduce_plan(world, &late.known, nullptr, &op), untax_unsupported,
                   {"fields that this library"});
  });
}

TEST(c_refusals, numbers_outside_an_enumeration_are_named) {
  run_ranks(1, [](untax_world* world, int) {
    untax_operator* op = nullptr;
    auto problem = sum_of(4);
    problem.type = 3;
    expect_failure(untax_all_reduce_plan(world, &problem, nullptr, &op), untax_invalid_argument,
                   {"type is 3", "0 to 2"});
    problem = sum_of(4);
    problem.reduction = -1;
    expect_failure(untax_all_reduce_plan(world, &problem, nullptr, &op), untax_invalid_argument,
                   {"reduction is -1"});
    untax_collective_options options{};
    options.size = sizeof options;
    options.pattern = 8;
    problem = sum_of(4);
    expect_failure(untax_all_reduce_plan(world, &problem, &options, &op), untax_invalid_argument,
                   {"pattern is 8"});
    EXPECT_EQ(op, nullptr);
  });
}

TEST(c_refusals, operands_that_do_not_fit_are_refused_and_the_operator_goes_on) {
  run_ranks(2, [](untax_world* world, int) {
    untax_operator* op = nullptr;
    const auto problem = sum_of(4);
    ASSERT_EQ(untax_all_reduce_plan(world, &problem, nullptr, &op), untax_ok) << last_text();
    std::vector<float> in(4, 1.0F);
    std::vector<float> out(4);
    const untax_const_array from{in.data(), 4, untax_f32};
    const untax_const_array short_in{in.data(), 3, untax_f32};
    const untax_const_array halves{in.data(), 4, untax_bf16};
    const untax_array to{out.data(), 4, untax_f32};
    expect_failure(untax_all_reduce_run(op, &short_in, &to, nullptr), untax_invalid_argument,
                   {"has 3 elements", "needs 4"});
    expect_failure(untax_all_reduce_run(op, &halves, &to, nullptr), untax_invalid_argument,
                   {"bf16", "fp32"});
    expect_failure(untax_all_reduce_run(op, nullptr, &to, nullptr), untax_invalid_argument,
                   {"in is NULL"});
    expect_failure(untax_broadcast_run(op, &from, &to, nullptr), untax_invalid_argument,
                   {"op is all_reduce", "untax_broadcast_run"});
    std::int64_t rows = 0;
    expect_failure(untax_operator_operand(op, "weights", &rows, nullptr, nullptr),
                   untax_invalid_argument, {"no operand \"weights\"", "in, out"});
    expect_failure(untax_world_destroy(world), untax_invalid_argument, {"1 operators are left"});
    EXPECT_OK(untax_all_reduce_run(op, &from, &to, nullptr));
    EXPECT_EQ(out, std::vector<float>(4, 2.0F));
    EXPECT_OK(untax_operator_destroy(op));
  });
}

TEST(c_refusals, ranks_that_plan_different_problems_disagree) {
  run_ranks(2, [](untax_world* world, int rank) {
    untax_operator* op = nullptr;
    const auto problem = sum_of(4 + rank);
    const int32_t status = untax_all_reduce_plan(world, &problem, nullptr, &op);
    expect_failure(status, untax_disagreement, {"all_reduce"});
  });
}

TEST(c_refusals, symmetric_memory_is_allocated_located_and_freed) {
  run_ranks(2, [](untax_world* world, int rank) {
    void* local = nullptr;
    EXPECT_EQ(untax_world_device(world), -1) << "it has no GPUs";
    EXPECT_EQ(untax_world_ranks_per_gpu(world), 1);
    EXPECT_EQ(untax_world_heap_used(world), 0);
    EXPECT_OK(untax_world_allocate(world, 64, "letters", &local));
    EXPECT_GE(untax_world_heap_used(world), 64);
    std::memset(local, 'a' + rank, 64);
    EXPECT_OK(untax_world_let_runs_follow(world, nullptr));
    EXPECT_OK(untax_world_barrier(world));
    void* other = nullptr;
    EXPECT_OK(untax_world_translate(world, local, 1 - rank, &other));
    EXPECT_EQ(static_cast<const char*>(other)[63], 'b' - rank);
    expect_failure(untax_world_translate(world, &other, 1 - rank, &other), untax_not_symmetric, {});
    EXPECT_OK(untax_world_barrier(world));
    EXPECT_OK(untax_world_free(world, local));
    expect_failure(untax_world_free(world, local), untax_invalid_argument, {"is free already"});
    expect_failure(untax_world_allocate(world, std::size_t{1} << 40U, nullptr, &local),
                   untax_out_of_memory, {});
  });
}

TEST(c_refusals, waiting_ranks_suspect_the_rank_that_failed) {
  run_ranks(3, [](untax_world* world, int rank) {
    if (rank == 1) {
      EXPECT_OK(untax_world_fail(world, "the tokenizer is missing"));
      return;
    }
    const int32_t status = untax_world_barrier(world);
    expect_failure(status, untax_aborted, {"rank 1", "the tokenizer is missing"});
    EXPECT_EQ(untax_last_error().suspect, 1);
    expect_failure(untax_world_check(world), untax_aborted, {"the tokenizer is missing"});
  });
}

TEST(c_refusals, waiting_ranks_suspect_the_rank_that_left) {
  run_ranks(3, [](untax_world* world, int rank) {
    if (rank == 2) return;
    const int32_t status = untax_world_barrier(world);
    expect_failure(status, untax_peer_lost, {"rank 2"});
    EXPECT_EQ(untax_last_error().suspect, 2);
  });
}

TEST(c_refusals, each_thread_has_its_own_last_error) {
  expect_failure(untax_world_barrier(nullptr), untax_invalid_argument, {"world is NULL"});
  std::thread([] {
    EXPECT_EQ(untax_last_error().status, untax_ok);
    EXPECT_STREQ(untax_last_error().text, "");
    EXPECT_EQ(untax_last_error().suspect, -1);
  }).join();
  EXPECT_EQ(untax_last_error().status, untax_invalid_argument);
}

TEST(c_refusals, worlds_and_plans_leave_nothing_behind) {
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    long whole = 0;
    long pages = 0;
    file >> whole >> pages;
    return pages;
  };
  const auto once = [](int plans) {
    run_ranks(1, [plans](untax_world* world, int) {
      for (int i = 0; i < plans; ++i) {
        untax_operator* op = nullptr;
        const auto problem = sum_of(64);
        ASSERT_EQ(untax_all_reduce_plan(world, &problem, nullptr, &op), untax_ok) << last_text();
        ASSERT_EQ(untax_operator_destroy(op), untax_ok) << last_text();
      }
    });
  };
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const bool slow = untax_test::slower_build() > 1;
  for (int i = 0; i < 20; ++i) once(10);
  const long before = resident();
  const auto open_before = descriptors();
  for (int i = 0; i < (slow ? 100 : 1000); ++i) once(10);
  EXPECT_EQ(descriptors(), open_before);
  if (slow) GTEST_SKIP() << "sanitizers keep memory";
  EXPECT_LT(resident() - before, 2000) << "pages";
}

}  // namespace
