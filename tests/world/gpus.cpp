// Worlds of GPUs where there is none, and what host worlds say about kernels. tests/gpu has the
// rest.
#include <map>

#include <untax/world/devices.hpp>
#include <untax/world/launch.hpp>

#include "src/world/own_share.hpp"
#include "src/world/settings.hpp"
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

TEST(gpus, impossible_numbers_are_refused) {
  for (const int ranks : {-1, 0, untax::max_ranks + 1}) {
    expect_error(error_of([&] { (void)world::local_gpus(ranks, small_world()); }),
                 errc::invalid_argument, {"GPUs", "1 to 64"});
  }
}

TEST(gpus, too_many_ranks_are_refused_with_the_reason) {
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

TEST(gpus, ranks_share_a_gpu_by_option_if_possible) {
  using untax::settings;
  const auto settings_of = [](const std::map<std::string, std::string>& variables) {
    return settings::of_gpus(small_world(), environment(variables)).ranks_per_gpu;
  };
  EXPECT_EQ(settings_of({}), 1);
  EXPECT_EQ(settings_of({{"UNTAX_RANKS_PER_GPU", "4"}, {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}}), 4);
  expect_error(error_of([&] {
                 settings_of({{"UNTAX_RANKS_PER_GPU", "4"}});
               }),
               errc::invalid_argument,
               {"4 ranks share a GPU", "CUDA_DEVICE_MAX_CONNECTIONS is not set", "has to be 32"});
  expect_error(error_of([&] {
                 settings_of({{"UNTAX_RANKS_PER_GPU", "2"}, {"CUDA_DEVICE_MAX_CONNECTIONS", "8"}});
               }),
               errc::invalid_argument, {"2 ranks share a GPU", "CUDA_DEVICE_MAX_CONNECTIONS is 8"});
  untax::world_options options = small_world();
  options.ranks_per_gpu = 9;
  expect_error(error_of([&] { (void)settings::of_gpus(options, environment()); }),
               errc::invalid_argument, {"9 ranks a GPU", "UNTAX_RANKS_PER_GPU", "1 to 8"});
}

TEST(gpus, the_environment_says_where_heaps_lie) {
  const environment wrong(std::map<std::string, std::string>{{"UNTAX_MEMORY", "gpu"}});
  expect_error(error_of([&] { (void)world::from_environment(small_world(), wrong); }),
               errc::invalid_argument, {"UNTAX_MEMORY is \"gpu\"", "host, cuda or automatic"});
  const environment host(std::map<std::string, std::string>{{"UNTAX_MEMORY", "host"}});
  EXPECT_EQ(world::from_environment(small_world(), host).memory(), memory_kind::host);
}

TEST(gpus, automatic_heaps_lie_on_gpus_if_each_rank_has_one) {
  EXPECT_EQ(untax::memory_for(4, 4, false), memory_kind::cuda);
  EXPECT_EQ(untax::memory_for(2, 8, true), memory_kind::cuda);
  EXPECT_EQ(untax::memory_for(4, 1, true), memory_kind::cuda) << "a launcher gave each its own";
  EXPECT_EQ(untax::memory_for(4, 1, false), memory_kind::host) << "all would share it";
  EXPECT_EQ(untax::memory_for(4, 2, true), memory_kind::host);
  EXPECT_EQ(untax::memory_for(1, 0, false), memory_kind::host);
}

TEST(gpus, a_process_alone_takes_a_gpu_automatically) {
  const memory_kind expected =
      untax::survey_devices(false).problem.empty() ? memory_kind::cuda : memory_kind::host;
  const environment asked(std::map<std::string, std::string>{{"UNTAX_MEMORY", "automatic"}});
  EXPECT_EQ(world::from_environment(small_world(), asked).memory(), expected);
  untax::world_options options = small_world();
  options.memory = memory_kind::automatic;
  EXPECT_EQ(
      world::from_environment(options, environment(std::map<std::string, std::string>{})).memory(),
      expected);
}

}  // namespace
