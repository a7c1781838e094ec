// Worlds of GPUs where there is none, and what host worlds say about kernels. tests/gpu has the
// rest.
#include <map>

#include <untax/world/launch.hpp>

#include "support.hpp"

namespace {

using untax::environment;
using untax::errc;
using untax::memory_kind;
using untax::world;
using world_test::error_of;
using world_test::expect_error;
using world_test::small_world;

TEST(gpus, a_world_in_host_memory_has_no_kernels) {
  const std::vector<world> views = world::threads(2, small_world());
  EXPECT_EQ(views[1].memory(), memory_kind::host);
  EXPECT_EQ(views[1].device(), -1);
  views[1].use_device();
  expect_error(error_of([&] { (void)views[1].device_state(); }), errc::unsupported,
               {"rank 1", "world of threads in host memory", "world::local_gpus", "UNTAX_MEMORY"});
}

TEST(gpus, a_number_of_them_has_to_make_sense) {
  for (const int ranks : {-1, 0, untax::max_ranks + 1}) {
    expect_error(error_of([&] { (void)world::local_gpus(ranks, small_world()); }),
                 errc::invalid_argument, {"GPUs", "1 to 64"});
  }
}

TEST(gpus, more_than_there_are_is_refused_with_the_reason) {
  const untax::error e = error_of([] { (void)world::local_gpus(untax::max_ranks, small_world()); });
  expect_error(e, errc::unsupported, {});
  const std::string_view text = e.what();
  EXPECT_TRUE(text.find("built without CUDA") != text.npos ||
              text.find("no GPU can be used here") != text.npos ||
              text.find("visible to this process") != text.npos)
      << text;
  EXPECT_EQ(error_of([] {
              untax::run_gpus(
                  untax::max_ranks, [](world&) {}, small_world());
            }).code(),
            errc::unsupported);
}

TEST(gpus, the_environment_says_where_heaps_lie) {
  const environment wrong(std::map<std::string, std::string>{{"UNTAX_MEMORY", "gpu"}});
  expect_error(error_of([&] { (void)world::from_environment(small_world(), wrong); }),
               errc::invalid_argument, {"UNTAX_MEMORY is \"gpu\"", "host or cuda"});
  const environment host(std::map<std::string, std::string>{{"UNTAX_MEMORY", "host"}});
  EXPECT_EQ(world::from_environment(small_world(), host).memory(), memory_kind::host);
}

}  // namespace
