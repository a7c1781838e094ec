// Jobs that are told the same things do not mix, and launchers that are killed leave nothing for
// long.
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "ranks.hpp"
#include "src/world/directory_lock.hpp"
#include "src/world/unix_socket.hpp"

namespace {

using namespace multi_test;
using untax::environment;
using untax::errc;
using untax::unix_socket;
using untax::world;
using variables = std::map<std::string, std::string>;

constexpr int jobs = 3;

/// A rank of a job that has its name from the address of a master, as jobs that scripts start do.
const rank_body namesake("namesake", [] {
  const variables v = {{"RANK", std::getenv("RANK")},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "localhost"},
                       {"MASTER_PORT", "29511"}};
  world w = world::from_environment(small_world(), environment(v));
  const auto launchers = w.allocate_cleared<std::int64_t>(2, "launchers");
  for (int peer = 0; peer < 2; ++peer)
    *launchers.at(peer, static_cast<std::size_t>(w.rank())) = getppid();
  w.barrier();
  EXPECT_EQ(*launchers.local(0), *launchers.local(1)) << "a rank of another job";
  w.barrier();
});

/// A script that starts the two ranks of a job, and says how they ended.
const rank_body script("starts namesakes", [] {
  std::vector<pid_t> ranks;
  for (const char* rank : {"0", "1"}) {
    setenv("RANK", rank, 1);
    ranks.push_back(fork());
    if (ranks.back() == 0) {
      execl("/proc/self/exe", "multi_test", "--as-rank", "namesake", nullptr);
      _exit(127);
    }
  }
  unsetenv("RANK");
  for (const pid_t rank : ranks) {
    int status = -1;
    EXPECT_EQ(waitpid(rank, &status, 0), rank);
    EXPECT_EQ(status, 0);
  }
});

TEST(launches, with_the_same_name_do_not_mix) {
  const belongings before = belongings::now();
  for (int round = 0; round < 8; ++round) expect_ok(launch("starts namesakes", jobs));
  EXPECT_EQ(belongings::now(), before);
}

const rank_body strangers("strangers", [] {
  const variables v = {{"UNTAX_RANK", std::to_string(launched_rank())},
                       {"UNTAX_WORLD_SIZE", "2"},
                       {"UNTAX_RENDEZVOUS", std::getenv("UNTAX_RENDEZVOUS")},
                       {"UNTAX_LAUNCH", launched_rank() == 0 ? "one" : "another"}};
  untax::world_options options = small_world();
  options.join_limit = launched_rank() == 0 ? 2 * impatient : impatient;
  world w = world::from_environment(options, environment(v));
});

TEST(launches, with_different_settings_get_an_error) {
  const outcome o = launch("strangers", 2);
  expect_error(o, 0, errc::timeout,
               {"rank 1 did not come", "of another launch than rank 0 (UNTAX_LAUNCH=one)"});
  expect_error(o, 1, errc::timeout,
               {"rank 0 did not come", "ranks of another launch meet there",
                "belongs to another launch than this rank (UNTAX_LAUNCH=another)"});
}

/// A directory of this test, private to the user.
class own_directory : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(directory_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_ = testing::TempDir() + "untax-XXXXXX";
};

using listeners = own_directory;

TEST_F(listeners, only_one_can_use_a_place) {
  const std::string path = directory_ + "/socket";
  for (int round = 0; round < 100; ++round) {
    // Sometimes there is what a dead process left.
    if (round % 2 == 1) {
      EXPECT_TRUE(unix_socket::listen(path));
    }
    std::vector<std::optional<unix_socket>> found(6);
    std::vector<std::jthread> threads;
    for (auto& socket : found) threads.emplace_back([&] { socket = unix_socket::listen(path); });
    threads.clear();
    int listening = 0;
    for (const auto& socket : found) {
      if (!socket) continue;
      ++listening;
      const auto caller = unix_socket::connect(path);
      EXPECT_TRUE(caller);
      EXPECT_TRUE(socket->wait(20000)) << "it listens, and nobody can find it";
    }
    ASSERT_EQ(listening, 1) << "round " << round;
  }
}

TEST_F(listeners, that_do_not_listen_yet_are_left_alone) {
  const std::string path = directory_ + "/socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const untax::descriptor slow(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  std::optional<unix_socket> other;
  std::jthread thread;
  {
    const untax::directory_lock lock(directory_);
    ASSERT_EQ(bind(slow.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    thread = std::jthread([&] { other = unix_socket::listen(path); });
    std::this_thread::sleep_for(20ms);
    ASSERT_EQ(listen(slow.get(), 5), 0);
  }
  thread.join();
  EXPECT_FALSE(other);
  EXPECT_TRUE(unix_socket::connect(path));
}

TEST_F(listeners, with_a_full_queue_count_as_alive) {
  const std::string path = directory_ + "/socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const untax::descriptor busy(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(busy.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(busy.get(), 0), 0);
  std::vector<unix_socket> callers;
  while (auto caller = unix_socket::connect(path)) callers.push_back(std::move(*caller));
  EXPECT_FALSE(unix_socket::listen(path));
}

/// A launcher as a user starts it: no rank of anything.
void launch_and_say_where() {
  unsetenv("UNTAX_RANK");
  unsetenv("UNTAX_RENDEZVOUS");
  setenv(std::getenv("TEST_VARIABLE"), std::getenv("TEST_VALUE"), 1);
  untax::process_launch l;
  l.ranks = 2;
  l.command = {"/proc/self/exe", "--as-rank", "says where"};
  l.output = [](int, std::string_view line) { say(std::string(line)); };
  EXPECT_TRUE(untax::launch_processes(l).ok());
}

const rank_body says_where("says where", [] {
  say(fmt::format("MEETS {}", std::getenv("UNTAX_RENDEZVOUS")));
  world w = world::from_environment(small_world());
  w.barrier();
});

const rank_body user("a launcher of a user", [] { launch_and_say_where(); });

using launcher_places = own_directory;

outcome launch_with(const std::string& name, const std::string& variable,
                    const std::string& value) {
  return launch(name, 1, {{"TEST_VARIABLE", variable}, {"TEST_VALUE", value}});
}

TEST_F(launcher_places, are_in_the_runtime_directory) {
  const outcome o = launch_with("a launcher of a user", "XDG_RUNTIME_DIR", directory_);
  expect_ok(o);
  EXPECT_TRUE(o.said(0, "MEETS").starts_with(directory_ + "/untax-launch-")) << o.all(0);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(launcher_places, are_where_the_user_wants_them) {
  const outcome kept = launch_with("a launcher of a user", "UNTAX_RENDEZVOUS", directory_);
  expect_ok(kept);
  EXPECT_EQ(kept.said(0, "MEETS"), directory_);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  const std::string fresh = directory_ + "/fresh";
  const outcome result = launch_with("a launcher of a user", "UNTAX_RENDEZVOUS", fresh);
  expect_ok(result);
  EXPECT_EQ(result.said(0, "MEETS"), fresh);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

/// Rank 0 waits for rank 1, which kills the launcher as soon as rank 0 is there.
const rank_body ends_its_launcher("ends its launcher", [] {
  if (launched_rank() == 0) {
    world w = world::from_environment(small_world());
    return;
  }
  const std::filesystem::path place = std::getenv("UNTAX_RENDEZVOUS");
  std::error_code none;
  while (!std::filesystem::exists(place, none) || std::filesystem::is_empty(place, none))
    std::this_thread::sleep_for(1ms);
  kill(getppid(), SIGKILL);
  pause();
});

const rank_body killed("a launcher that is killed", [] {
  unsetenv("UNTAX_RANK");
  unsetenv("UNTAX_RENDEZVOUS");
  setenv(std::getenv("TEST_VARIABLE"), std::getenv("TEST_VALUE"), 1);
  untax::process_launch l;
  l.ranks = 2;
  l.command = {"/proc/self/exe", "--as-rank", "ends its launcher"};
  static_cast<void>(untax::launch_processes(l));
});

TEST_F(launcher_places, that_a_killed_launcher_left_are_removed_by_the_next_one) {
  const outcome o = launch_with("a launcher that is killed", "XDG_RUNTIME_DIR", directory_);
  EXPECT_EQ(o.result.ends[0].signal, SIGKILL) << o.all(0);
  EXPECT_FALSE(std::filesystem::is_empty(directory_)) << "nobody was left to remove it";
  const std::string others = directory_ + "/untax-launch-1-0-0-0";
  // Named alike, but not as launchers name them.
  const auto left = *std::filesystem::directory_iterator(directory_);
  ASSERT_NE(left.path(), others);
  std::string strange = left.path().filename().string();
  strange = directory_ + "/" + strange.replace(0, 5, "other");
  for (const std::string& path : {others, strange}) {
    std::filesystem::create_directory(path);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  expect_ok(launch_with("a launcher of a user", "XDG_RUNTIME_DIR", directory_));
  EXPECT_TRUE(std::filesystem::exists(others)) << "of another process namespace";
  EXPECT_TRUE(std::filesystem::exists(strange)) << "of another program";
  std::filesystem::remove(others);
  std::filesystem::remove(strange);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

}  // namespace
