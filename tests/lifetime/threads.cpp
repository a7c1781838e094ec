// A second thread that calls an operator during a run is refused at once, and the run goes on.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <untax/world/launch.hpp>

#include "ops/common/run_turns.hpp"
#include "samples.hpp"
#include "tests/errors.hpp"

namespace untax::testing {
namespace {

template <class Operator>
class threads_of : public ::testing::Test {};
TYPED_TEST_SUITE(threads_of, all_operators);

/// Calls `run` in two threads of rank 0 at a time, of which one can only return when it has been
/// released. Returns the error of the other one.
template <class Run, class Release>
std::optional<error> refusal_of(const Run& run, const Release& release) {
  std::array<std::optional<error>, 2> errors;
  std::array<std::thread, 2> both;
  for (std::size_t i = 0; i < both.size(); ++i) {
    both[i] = std::thread([&, i] {
      try {
        run();
      } catch (const error& e) {
        errors[i] = e;
        release();
      }
    });
  }
  for (std::thread& thread : both) thread.join();
  EXPECT_FALSE(errors[0] && errors[1]) << errors[0]->what() << "\n" << errors[1]->what();
  return errors[0] ? errors[0] : errors[1];
}

/// Returns when `flag` is set, or after 10 seconds.
void await(const std::atomic<bool>& flag) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!flag && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

TYPED_TEST(threads_of, a_running_operator_are_refused) {
  using use = sample<TypeParam>;
  std::atomic<bool> refused = false;
  std::optional<error> refusal;
  run_threads(
      ranks,
      [&](world& w) {
        auto op = use::make(w, pattern::fused_sequential);
        use::run(op);
        w.barrier();
        // Of a broadcast only the root's peers wait for another rank.
        if (w.rank() == ranks - 1) {
          refusal = refusal_of([&] { use::run(op); }, [&] { refused = true; });
        } else {
          await(refused);
          use::run(op);
        }
        use::run(op);
      },
      small_world());
  ASSERT_TRUE(refusal) << "both threads ran";
  untax_test::expect_error(
      *refusal, errc::invalid_argument,
      {"rank 2: ", "another thread is in a run of this operator", "used by one thread at a time"});
}

TEST(threads_of_an_operator, take_turns_also_after_an_error) {
  run_threads(
      1,
      [](world& w) {
        run_turns turns(w, "an operator");
        EXPECT_THROW(turns({}, [] { throw error(errc::timeout, "a wait"); }), error);
        std::atomic<bool> refused = false;
        const auto refusal =
            refusal_of([&] { turns({}, [&] { await(refused); }); }, [&] { refused = true; });
        ASSERT_TRUE(refusal);
        untax_test::expect_error(*refusal, errc::invalid_argument,
                                 {"rank 0: an operator: another"});
        int runs = 0;
        for (int i = 0; i < 2; ++i) turns({}, [&] { ++runs; });
        EXPECT_EQ(runs, 2);
      },
      small_world());
}

/// An operator that is not collective has no state on a host.
TEST(threads_of_an_operator, run_at_the_same_time_if_it_waits_for_no_peer) {
  run_threads(
      1,
      [](world& w) {
        run_turns turns = run_turns::alone(w, "an operator");
        std::atomic<int> inside = 0;
        std::atomic<bool> both = false;
        const auto run = [&] {
          turns({}, [&] {
            if (++inside == 2) both = true;
            await(both);
          });
        };
        std::thread other(run);
        run();
        other.join();
        EXPECT_TRUE(both);
      },
      small_world());
}

}  // namespace
}  // namespace untax::testing
