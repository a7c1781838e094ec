// A child process that ends its copies of a world and its operators does nothing to the ranks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include <untax/sparse/spmv.hpp>
#include <untax/world/launch.hpp>

#include "samples.hpp"
#include "tests/errors.hpp"

namespace untax::testing {
namespace {

using untax_test::error_of;

constexpr unsigned hangs_after_s = 60;

/// The exit status of a child that runs `body`; it ends without one if it hangs.
template <class Body>
int status_of_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(hangs_after_s);
    int status = 1;
    try {
      status = body();
    } catch (...) {
      status = 2;
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

template <class Operator>
class forked : public ::testing::Test {};
TYPED_TEST_SUITE(forked, all_operators);

TYPED_TEST(forked, a_child_ends_its_copies_of_world_and_operator) {
  using use = sample<TypeParam>;
  for (const int workers : {1, 3}) {
    run_threads(
        2,
        [&](world& original) {
          std::optional<world> w(std::move(original));
          std::optional op(use::make(*w, pattern::fused_sequential, workers));
          use::run(*op);
          if (w->rank() == 1) {
            EXPECT_EQ(status_of_child([&] {
                        op.reset();
                        w.reset();
                        return 0;
                      }),
                      0);
          }
          EXPECT_EQ(w->state().status(1), rank_status::running);
          use::run(*op);
          w->barrier();
          op.reset();
          w->barrier();
          EXPECT_EQ(w->heap().used(), 0U);
          original = std::move(*w);
        },
        small_world());
  }
}

TEST(forked_world, refuses_collective_calls_in_the_child) {
  run_threads(
      2,
      [](world& w) {
        auto op = sample<all_reduce>::make(w, pattern::fused_sequential, 2);
        sample<all_reduce>::run(op);
        if (w.rank() == 1) {
          EXPECT_EQ(status_of_child([&] {
                      const auto refused = [](const auto& call) {
                        const error e = error_of(call);
                        return e.code() == errc::unsupported &&
                               std::string(e.what()).find("forked") != std::string::npos;
                      };
                      const bool complete = refused([&] { w.barrier(); }) &&
                                            refused([&] { (void)w.allocate<int>(1, "x"); }) &&
                                            refused([&] { sample<all_reduce>::run(op); });
                      w.fail(errc::internal, "only the child has failed");
                      return complete ? 0 : 3;
                    }),
                    0);
        }
        w.barrier();
        sample<all_reduce>::run(op);
      },
      small_world());
}

TEST(forked_product, refuses_to_wait_for_threads_that_stayed_in_the_parent) {
  const std::vector<std::int32_t> offsets = {0, 1, 2};
  const std::vector<std::int32_t> columns = {1, 0};
  const std::vector<double> values = {2, 3};
  const sparse::csr_view<double, std::int32_t> matrix{2, 2, offsets, columns, values};
  const std::vector<double> x = {1, 10};
  std::vector<double> y(2);
  for (const int threads : {1, 3}) {
    std::optional<sparse::spmv<double, std::int32_t>> product(std::in_place, matrix,
                                                              sparse::spmv_kernel::coo, threads);
    EXPECT_EQ(status_of_child([&] {
                const auto run = [&] { product->run(1, x, 0, y); };
                if (threads == 1) {
                  run();
                } else if (error_of(run).code() != errc::unsupported) {
                  return 3;
                }
                product.reset();
                return 0;
              }),
              0);
    product->run(1, x, 0, y);
    EXPECT_EQ(y, (std::vector<double>{20, 3}));
    EXPECT_EQ(error_of([&] { product->run(1, y, 0, y); }).code(), errc::invalid_argument);
  }
}

}  // namespace
}  // namespace untax::testing
