// Settings of worlds, from options and the environment: every limit, on both of its sides.
#include "src/world/settings.hpp"

#include <limits>
#include <map>
#include <string>

#include <untax/core/environment.hpp>

#include "support.hpp"

namespace {

using namespace std::chrono_literals;
using untax::environment;
using untax::errc;
using untax::memory_kind;
using untax::settings;
using untax::world_options;
using world_test::error_of;
using world_test::expect_error;

using variables = std::map<std::string, std::string>;

settings of(const variables& values, const world_options& options = {}) {
  return settings::of_gpus(options, environment(values));
}

/// `name` may be `least` to `most`.
void expect_limits(const std::string& name, std::int64_t least, std::int64_t most,
                   const variables& with = {}) {
  for (const std::int64_t value : {least - 1, least, most, most + 1}) {
    variables values = with;
    values[name] = std::to_string(value);
    if (value >= least && value <= most) {
      EXPECT_NO_THROW((void)of(values)) << name << "=" << value;
    } else {
      expect_error(error_of([&] { (void)of(values); }), errc::invalid_argument, {values[name]});
    }
  }
}

TEST(settings, take_each_variable_up_to_its_limits) {
  constexpr std::int64_t year_ms = std::int64_t{1000} * 60 * 60 * 24 * 365;
  expect_limits("UNTAX_HEAP_GUARDS", 0, 1);
  expect_limits("UNTAX_WAIT_LIMIT_MS", 0, year_ms);
  expect_limits("UNTAX_JOIN_LIMIT_MS", 0, year_ms);
  expect_limits("UNTAX_RANKS_PER_GPU", 1, 8, {{"CUDA_DEVICE_MAX_CONNECTIONS", "32"}});
  expect_limits("CUDA_DEVICE_MAX_CONNECTIONS", 1, 32);
  EXPECT_FALSE(of({{"UNTAX_HEAP_GUARDS", "0"}}).heap_guards);
  EXPECT_TRUE(of({{"UNTAX_HEAP_GUARDS", "1"}}).heap_guards);
  EXPECT_EQ(of({{"UNTAX_WAIT_LIMIT_MS", "7"}}).wait_limit, 7ms);
  EXPECT_EQ(of({{"UNTAX_JOIN_LIMIT_MS", "8"}}).join_limit, 8ms);
  EXPECT_EQ(of({{"UNTAX_MEMORY", "cuda"}}).memory, memory_kind::cuda);
  EXPECT_EQ(of({}).ranks_per_gpu, 1);
}

TEST(settings, ranks_that_share_a_gpu_need_all_of_its_queues) {
  for (const std::string queues : {"1", "2", "31"}) {
    const variables few = {{"CUDA_DEVICE_MAX_CONNECTIONS", queues}};
    EXPECT_EQ(of(few).ranks_per_gpu, 1) << "who has a GPU needs no more";
    world_options shared;
    shared.ranks_per_gpu = 2;
    expect_error(error_of([&] { (void)of(few, shared); }), errc::invalid_argument,
                 {"CUDA_DEVICE_MAX_CONNECTIONS is " + queues + "; it has to be 32"});
  }
  expect_error(error_of([] {
                 (void)of({{"UNTAX_RANKS_PER_GPU", "2"}});
               }),
               errc::invalid_argument, {"is not set; it has to be 32"});
  EXPECT_EQ(of({{"UNTAX_RANKS_PER_GPU", "2"}, {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}}).ranks_per_gpu,
            2);
}

TEST(settings, of_heaps_adapt_to_each_other_unless_they_are_set) {
  constexpr std::size_t giga = std::size_t{1} << 30;
  EXPECT_EQ(of({}).heap_bytes, giga);
  EXPECT_EQ(of({}).heap_limit, 512 * giga);
  EXPECT_EQ(of({{"UNTAX_HEAP_BYTES", "600G"}}).heap_limit, 600 * giga);
  EXPECT_EQ(of({{"UNTAX_HEAP_LIMIT", "1K"}}).heap_bytes, 1024U);
  world_options options;
  options.heap_limit = 2 * giga;
  EXPECT_EQ(of({{"UNTAX_HEAP_LIMIT", "1K"}}, options).heap_limit, 2 * giga);
  EXPECT_EQ(of({{"UNTAX_HEAP_BYTES", "2G"}}, options).heap_bytes, 2 * giga);
  expect_error(error_of([&] {
                 (void)of({{"UNTAX_HEAP_BYTES", "3G"}}, options);
               }),
               errc::invalid_argument,
               {"a heap of 3 GiB at first (UNTAX_HEAP_BYTES) cannot grow to 2 GiB"});
}

TEST(settings, options_are_stronger_than_the_environment) {
  world_options options;
  options.heap_bytes = 4096;
  options.heap_guards = false;
  options.memory = memory_kind::host;
  options.wait_limit = 3ms;
  options.join_limit = 4ms;
  options.ranks_per_gpu = 1;
  const settings s = of({{"UNTAX_HEAP_BYTES", "8192"},
                         {"UNTAX_HEAP_GUARDS", "1"},
                         {"UNTAX_MEMORY", "cuda"},
                         {"UNTAX_WAIT_LIMIT_MS", "1000"},
                         {"UNTAX_JOIN_LIMIT_MS", "1000"},
                         {"UNTAX_RANKS_PER_GPU", "2"}},
                        options);
  EXPECT_EQ(s.heap_bytes, 4096U);
  EXPECT_FALSE(s.heap_guards);
  EXPECT_EQ(s.memory, memory_kind::host);
  EXPECT_EQ(s.wait_limit, 3ms);
  EXPECT_EQ(s.join_limit, 4ms);
  EXPECT_EQ(s.ranks_per_gpu, 1);
  for (const std::int64_t limit : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    world_options odd;
    odd.wait_limit = std::chrono::milliseconds(limit);
    expect_error(error_of([&] { (void)of({}, odd); }), errc::invalid_argument,
                 {"wait_limit is " + std::to_string(limit) + " ms", "a year"});
  }
  for (const int ranks : {0, 9}) {
    options.ranks_per_gpu = ranks;
    expect_error(error_of([&] {
                   (void)of({{"CUDA_DEVICE_MAX_CONNECTIONS", "32"}}, options);
                 }),
                 errc::invalid_argument, {std::to_string(ranks) + " ranks a GPU", "1 to 8"});
  }
}

}  // namespace
