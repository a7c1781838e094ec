// Messages of processes before they meet, and files left by launchers that were killed.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include <untax/world/launch.hpp>
#include <untax/world/world.hpp>

#include "src/world/launch_place.hpp"
#include "src/world/process_identity.hpp"
#include "support.hpp"

namespace {

using untax::errc;
using untax::world;
using world_test::error_of;
using world_test::expect_error;
using world_test::small_world;

/// Sets a variable of the environment for as long as it lives.
class variable_for_now {
 public:
  variable_for_now(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;  // NOLINT(concurrency-mt-unsafe)
    setenv(name, value.c_str(), 1);                                // NOLINT(concurrency-mt-unsafe)
  }
  variable_for_now(const variable_for_now&) = delete;
  variable_for_now& operator=(const variable_for_now&) = delete;
  ~variable_for_now() {
    if (before_.empty()) {
      unsetenv(name_);  // NOLINT(concurrency-mt-unsafe)
    } else {
      setenv(name_, before_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    }
  }

 private:
  const char* name_;
  std::string before_;
};

// The error of a rank is cut to 255 bytes.
void expect_cut(const untax::error& e) {
  const std::string text = e.what();
  ASSERT_NE(text.find("rank 0: "), std::string::npos) << text;
  EXPECT_EQ(text.size() - text.find("rank 0: "), 8 + 255) << text;
}

TEST(exchange, cuts_long_errors) {
  const variable_for_now soon("UNTAX_WAIT_LIMIT_MS", std::string(400, 'x'));
  expect_cut(error_of([] { (void)world::from_exchange(0, 1, {}, {}); }));
}

TEST(exchange, cuts_messages_without_end) {
  std::string boot;
  expect_cut(error_of([&] {
    (void)world::from_exchange(
        1, 2,
        [&](std::span<const std::byte> mine, std::span<std::byte> bytes) {
          boot = reinterpret_cast<const char*>(mine.data()) + 64;
          std::ranges::fill(bytes, std::byte{'x'});
        },
        small_world());
  }));
  std::string of_host;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, of_host);
  EXPECT_EQ(boot, of_host);
}

TEST(launch_place, removes_files_of_dead_launchers_only) {
  std::string root = "/tmp/untax-sweep-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  const variable_for_now there("XDG_RUNTIME_DIR", root);
  // No process has this id.
  const std::string dead =
      fmt::format("untax-launch-2147483647-f-{:x}", untax::process_namespace());
  for (const std::string& name : {dead + "-0", dead, std::string("untax-launch-2147483647")}) {
    std::filesystem::create_directory(root + "/" + name);
    std::filesystem::permissions(root + "/" + name, std::filesystem::perms::owner_all);
  }
  { const untax::launch_place place(""); }
  EXPECT_FALSE(std::filesystem::exists(root + "/" + dead + "-0"));
  EXPECT_TRUE(std::filesystem::exists(root + "/" + dead));
  EXPECT_TRUE(std::filesystem::exists(root + "/untax-launch-2147483647"));
  std::filesystem::remove_all(root);
}

TEST(launches, have_as_many_ranks_as_a_world) {
  const auto refused = [](int ranks) {
    untax::process_launch launch;
    launch.ranks = ranks;
    return error_of([&] { (void)untax::launch_processes(launch); });
  };
  expect_error(refused(untax::max_ranks), errc::invalid_argument, {"there is no command"});
  expect_error(refused(untax::max_ranks + 1), errc::invalid_argument, {"a world of 65 ranks"});
  expect_error(refused(0), errc::invalid_argument, {"a world of 0 ranks"});
}

TEST(launches, hand_their_environment_to_the_ranks) {
  const variable_for_now kept("UNTAX_TEST_KEPT", "yes");
  untax::process_launch launch;
  launch.command = {"/bin/sh", "-c", "test \"$UNTAX_TEST_KEPT\" = yes"};
  const auto result = untax::launch_processes(launch);
  ASSERT_EQ(result.ends.size(), 1U);
  EXPECT_TRUE(result.ends.front().ok()) << result.ends.front().text();
}

}  // namespace
