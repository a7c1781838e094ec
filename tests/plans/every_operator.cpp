// Every operator on the host, when it is made: ranks agree on the whole plan, and `explain()`
// describes it.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "tests/errors.hpp"
#include "tests/lifetime/samples.hpp"

namespace untax::testing {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

template <class Operator>
class every_operator : public ::testing::Test {};
TYPED_TEST_SUITE(every_operator, all_operators);

TYPED_TEST(every_operator, explains_its_plan) {
  using op = sample<TypeParam>;
  run_threads(
      2,
      [](world& w) {
        for (const pattern how : op::patterns()) {
          const auto planned = op::make(w, how, 3);
          EXPECT_EQ(planned.plan().how, how);
          const std::string& text = planned.explain();
          EXPECT_NE(text.find(name_of(how)), std::string::npos) << text;
          EXPECT_NE(text.find("3 workers"), std::string::npos) << text;
        }
      },
      small_world());
}

TYPED_TEST(every_operator, refuses_ranks_that_differ) {
  using op = sample<TypeParam>;
  const auto expect_disagreement = [](const auto& make, std::vector<std::string> parts) {
    parts.insert(parts.end(), {"what differs:", "at rank 0", "at rank 1"});
    expect_error(error_of([&] { run_threads(2, make, small_world()); }), errc::disagreement, parts);
  };
  expect_disagreement([](world& w) { op::make(w, op::patterns().back(), 2 + w.rank()); },
                      {"workers"});
  const auto different = [](int rank) { return op::patterns()[static_cast<std::size_t>(rank)]; };
  expect_disagreement([&](world& w) { op::make(w, different(w.rank()), 2); },
                      {std::string(name_of(different(0))), std::string(name_of(different(1)))});
}

/// Operators whose runs have any number of rows, at most those of the problem.
template <class Operator, class Problem>
void refuse_rows_that_differ(const Problem& problem) {
  for (const bool in_workers : {true, false}) {
    const auto make = [&](world& w) {
      operator_options options{
          .how = pattern::fused_sequential, .workers = 2, .varying_rows = true};
      if (in_workers) options.workers += w.rank();
      if (!in_workers && w.rank() == 1) options.how = pattern::fused_specialized;
      Operator(w, problem, options);
    };
    expect_error(error_of([&] { run_threads(2, make, small_world()); }), errc::disagreement,
                 {"what differs:", in_workers ? "workers" : "fused_specialized"});
  }
}

TEST(operators_of_any_rows, refuse_ranks_that_differ) {
  refuse_rows_that_differ<all_gather_gemm>(sample<all_gather_gemm>::problem());
  refuse_rows_that_differ<gemm_all_scatter>(sample<gemm_all_scatter>::problem());
  refuse_rows_that_differ<gemm_reduce_scatter>(sample<gemm_reduce_scatter>::problem());
  refuse_rows_that_differ<gemm_all_reduce>(sample<gemm_all_reduce>::problem());
  refuse_rows_that_differ<all_reduce_norm>(sample<all_reduce_norm>::problem());
}

}  // namespace
}  // namespace untax::testing
