// A run whose launches fail half-way stops the world; one that has not begun only throws.
#include <stdexcept>

#include <untax/world/launch.hpp>

#include "engines/gpu/launch/whole_run.hpp"
#include "support.hpp"

namespace {

using untax::errc;
using untax::error;
using untax::world;
using untax::gpu::whole_run;
using world_test::error_of;
using world_test::expect_error;
using world_test::small_world;

void start() {}
void fail() { throw error(errc::internal, "rank 0: my_op: a kernel cannot be launched"); }

TEST(whole_run, that_has_not_begun_throws_and_the_world_goes_on) {
  auto ranks = world::threads(2, small_world());
  whole_run all(ranks[0]);
  expect_error(error_of([&] { all(fail); }), errc::internal, {"cannot be launched"});
  EXPECT_FALSE(ranks[0].stopped());
  EXPECT_NO_THROW(ranks[1].check());
}

TEST(whole_run, stops_the_world_half_way) {
  for (int before = 1; before < 4; ++before) {
    auto ranks = world::threads(2, small_world());
    whole_run all(ranks[0]);
    for (int i = 0; i < before; ++i) all(start);
    EXPECT_FALSE(ranks[0].stopped());
    expect_error(error_of([&] { all(fail); }), errc::internal, {"cannot be launched"});
    expect_error(
        error_of([&] { ranks[1].check(); }), errc::aborted,
        {"rank 1: ",
         "because rank 0 reported: my_op: a kernel cannot be launched; its run had begun"});
  }
}

TEST(whole_run, counts_as_begun_when_one_of_several_launches_fails) {
  auto ranks = world::threads(2, small_world());
  whole_run all(ranks[0]);
  expect_error(error_of([&] { all.all_of(fail); }), errc::internal, {"cannot be launched"});
  EXPECT_TRUE(ranks[1].stopped());
}

TEST(whole_run, stops_the_world_for_other_exceptions_too) {
  auto ranks = world::threads(2, small_world());
  whole_run all(ranks[0]);
  all(start);
  EXPECT_THROW(all([] { throw std::runtime_error("no memory for a text"); }), std::runtime_error);
  expect_error(error_of([&] { ranks[1].check(); }), errc::aborted, {"no memory for a text"});
}

TEST(whole_run, that_succeeds_leaves_the_world_running) {
  auto ranks = world::threads(2, small_world());
  whole_run all(ranks[0]);
  for (int i = 0; i < 5; ++i) all(start);
  EXPECT_FALSE(ranks[0].stopped());
}

}  // namespace
