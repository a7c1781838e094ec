// Runs of the baseline on GPUs: whichever of their launches fails, no peer is left an epoch ahead.
#include <string>

#include <untax/world/world.hpp>

#include "ops/common/library_run.hpp"
#include "support.hpp"

namespace {

using untax::errc;
using untax::error;
using untax::world;
using world_test::error_of;
using world_test::expect_error;
using world_test::small_world;

/// Launches, of which one fails. Notes their order.
struct launches {
  std::string failing;
  std::string order;

  auto named(const std::string& name) {
    return [this, name] {
      order += name;
      if (name == failing) throw error(errc::internal, "rank 0: my_op: " + name + " failed");
    };
  }
};

void expect_stopped(world& peer, const std::string& failing) {
  expect_error(error_of([&] { peer.check(); }), errc::aborted,
               {"because rank 0 reported: my_op: " + failing + " failed; its run had begun"});
}

TEST(library_run, that_gathers_first_stops_the_world_where_it_fails) {
  for (const std::string failing : {"G", "M"}) {
    auto ranks = world::threads(2, small_world());
    launches l{failing, ""};
    expect_error(
        error_of([&] { untax::gather_then_multiply(ranks[0], l.named("G"), l.named("M")); }),
        errc::internal, {failing + " failed"});
    expect_stopped(ranks[1], failing);
    EXPECT_EQ(l.order, failing == "G" ? "G" : "GM");
  }
}

TEST(library_run, that_multiplies_first_stops_the_world_from_then_on) {
  for (const std::string failing : {"M", "G", "J"}) {
    auto ranks = world::threads(2, small_world());
    launches l{failing, ""};
    expect_error(error_of([&] {
                   untax::multiply_then_gather(ranks[0], l.named("M"), l.named("G"), l.named("J"));
                 }),
                 errc::internal, {failing + " failed"});
    // With the first launch nothing of the run has begun: peers wait, and it can be called again.
    EXPECT_EQ(ranks[1].stopped(), failing != "M");
    if (failing != "M") expect_stopped(ranks[1], failing);
    EXPECT_EQ(l.order, std::string("MGJ").substr(0, l.order.size()));
    EXPECT_EQ(l.order.back(), failing.front());
  }
}

TEST(library_run, that_succeeds_leaves_the_world_running) {
  auto ranks = world::threads(2, small_world());
  launches l;
  untax::gather_then_multiply(ranks[0], l.named("G"), l.named("M"));
  untax::multiply_then_gather(ranks[0], l.named("M"), l.named("G"), l.named("J"));
  EXPECT_EQ(l.order, "GMMGJ");
  EXPECT_FALSE(ranks[0].stopped());
  EXPECT_NO_THROW(ranks[1].check());
}

}  // namespace
