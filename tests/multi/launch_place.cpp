// Which directories of dead launchers the next one removes, and where its own one is.
#include "src/world/launch_place.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "ranks.hpp"
#include "src/world/process_identity.hpp"
#include "src/world/unix_socket.hpp"
#include "tests/errors.hpp"

namespace {

using untax::launch_place;
using untax::unix_socket;

/// A runtime directory of this process, whose path has a certain length.
class runtime : public testing::Test {
 protected:
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs here
  void SetUp() override {
    const char* const before = std::getenv(name);
    if (before != nullptr) before_ = before;
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
    use(root_);
  }
  void TearDown() override {
    std::filesystem::remove_all(root_);
    if (before_.empty()) unsetenv(name);
    if (!before_.empty()) setenv(name, before_.c_str(), 1);
  }
  static void use(const std::string& directory) { setenv(name, directory.c_str(), 1); }
  // NOLINTEND(concurrency-mt-unsafe)
  /// Makes a directory; how it is named comes behind what all are named.
  std::string made(const std::string& rest, mode_t mode = 0700) const {
    std::string path = root_ + "/" + std::string(untax::launch_directory) + rest;
    EXPECT_EQ(mkdir(path.c_str(), mode), 0) << path;
    return path;
  }

  static constexpr auto name = "XDG_RUNTIME_DIR";
  std::string before_;
  std::string root_ = "/tmp/untax-XXXXXX";
};

int dead_process() {
  const int child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return child;
}

TEST_F(runtime, keeps_directories_of_living_launchers) {
  const int me = getpid();
  const std::uint64_t start = untax::start_of(me);
  const auto space = untax::process_namespace();
  const auto named = [](int process, std::uint64_t since, std::uint64_t where) {
    return fmt::format("{}-{:x}-{:x}-", process, since, where);
  };
  const int dead = dead_process();
  const std::vector<std::string> gone = {
      made(named(dead, start, space) + "12345678"), made(named(me, start + 1, space) + "12345678"),
      made(named(dead, start, space)), made(fmt::format("{}-0-{:x}-x", me, space))};
  const std::vector<std::string> folders = {
      made(named(me, start, space) + "12345678"),
      made(named(dead, start, space + 1) + "12345678"),
      made(named(dead, start, space) + "12345678-open", 0755),
      made(named(0, start, space) + "12345678"),
      made(named(-5, start, space) + "12345678"),
      made(fmt::format("{}-{:x}-{:x}", dead, start, space)),
      made(fmt::format("{}-{:x}", dead, start)),
      made(fmt::format("{}", dead)),
      made(fmt::format("{}-{:x}-{:x}+1-1", dead, start, space)),
      made(fmt::format("x{}", named(dead, start, space))),
      made("")};
  const std::string file =
      root_ + "/" + std::string(untax::launch_directory) + named(dead, start, space) + "a-file";
  std::ofstream(file) << "something";
  std::filesystem::create_directory(gone.front() + "/with");
  {
    const launch_place place("");
    EXPECT_TRUE(place.directory().starts_with(root_ + "/" + std::string(untax::launch_directory) +
                                              named(me, start, space)))
        << place.directory();
    EXPECT_TRUE(place.word().empty());
    EXPECT_FALSE(std::filesystem::exists(place.directory())) << "rank 0 makes it";
    std::filesystem::create_directories(place.directory() + "/with");
    EXPECT_NE(launch_place("").directory(), place.directory());
    EXPECT_TRUE(std::filesystem::exists(place.directory())) << "its launcher lives";
  }
  for (const std::string& path : gone) EXPECT_FALSE(std::filesystem::exists(path)) << path;
  for (const std::string& path : folders) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_TRUE(std::filesystem::exists(file));
  const auto entries = std::filesystem::directory_iterator(root_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), std::ssize(folders) + 1);
}

TEST_F(runtime, is_used_where_a_path_in_it_is_short_enough) {
  for (const std::size_t length : {32, 33}) {
    const std::string path = root_ + "/" + std::string(length - root_.size() - 1, 'x');
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    use(path);
    EXPECT_EQ(launch_place("").directory().starts_with(path), length == 32);
    EXPECT_TRUE(launch_place("").directory().starts_with(length == 32 ? path : "/tmp/untax-l"));
  }
}

TEST_F(runtime, prescribed_directories_tell_launches_apart_by_a_word) {
  const std::string fresh = root_ + "/fresh";
  const std::string full = root_ + "/full";
  std::filesystem::create_directories(full + "/something");
  for (const std::string& path : {root_, fresh, full}) {
    const bool was_there = std::filesystem::exists(path);
    {
      const launch_place place(path);
      const launch_place other(path);
      EXPECT_EQ(place.directory(), path);
      EXPECT_EQ(place.word().size(), 16U);
      EXPECT_NE(place.word(), other.word());
      std::filesystem::create_directories(path);
    }
    EXPECT_EQ(std::filesystem::exists(path), was_there) << path;
  }
  EXPECT_TRUE(std::filesystem::exists(full + "/something"));
}

TEST_F(runtime, sockets_report_the_fault_of_their_path) {
  using untax_test::error_of;
  using untax_test::expect_error;
  const auto padded = [&](std::size_t length) {
    return root_ + "/" + std::string(length - root_.size() - 1, 'x');
  };
  EXPECT_FALSE(unix_socket::connect(padded(107))) << "nobody listens";
  EXPECT_TRUE(unix_socket::listen(padded(107)));
  expect_error(error_of([&] { (void)unix_socket::connect(padded(108)); }),
               untax::errc::invalid_argument, {"at most 107 characters, this has 108"});
  const std::string file = root_ + "/file";
  std::ofstream(file) << "something";
  expect_error(error_of([&] { (void)unix_socket::connect(file + "/socket"); }),
               untax::errc::internal, {file + "/socket", "Not a directory"});
  expect_error(error_of([&] { (void)unix_socket::listen(root_ + "/none/socket"); }),
               untax::errc::internal, {"/none/socket", "No such file"});
}

TEST_F(runtime, sockets_tell_that_the_other_side_has_gone) {
  const auto listener = unix_socket::listen(root_ + "/s");
  ASSERT_TRUE(listener);
  EXPECT_FALSE(listener->wait(0));
  EXPECT_FALSE(listener->accept()) << "nobody has come";
  auto guest = unix_socket::connect(root_ + "/s");
  ASSERT_TRUE(guest);
  EXPECT_TRUE(listener->wait(1000));
  const auto host = listener->accept();
  ASSERT_TRUE(host);
  const std::array<std::byte, 6> sent{std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 2> data{};
  // As many descriptors as go with a packet, of whose bytes the last are cut off.
  const std::vector<int> many(unix_socket::most_attachments, host->number());
  EXPECT_TRUE(guest->send(sent, many));
  const auto cut = host->receive(data);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->bytes, 2U);
  EXPECT_EQ(data[1], std::byte{2});
  EXPECT_EQ(cut->attachments.size(), many.size());
  EXPECT_FALSE(host->receive(data)) << "a packet is taken once";
  guest.reset();
  EXPECT_TRUE(host->wait(1000));
  const auto end = host->receive(data);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->bytes, 0U);
  EXPECT_TRUE(end->attachments.empty());
  EXPECT_FALSE(host->send(sent)) << "nobody is there";
}

}  // namespace
