// The holder of a directory's lock, the time that others wait for it, and files that are no locks.
#include "src/world/directory_lock.hpp"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace {

using untax::directory_lock;
using namespace std::chrono_literals;

class directory_locks : public testing::Test {
 protected:
  directory_locks() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~directory_locks() override { std::filesystem::remove_all(path); }
  std::string path = std::filesystem::temp_directory_path() / "untax-lock-XXXXXX";
};

TEST_F(directory_locks, are_waited_for) {
  std::optional<directory_lock> first(path);
  ASSERT_TRUE(*first);
  std::atomic<bool> given_back{false};
  std::jthread other([&] {
    const directory_lock second(path, 100s);
    EXPECT_TRUE(second);
    EXPECT_TRUE(given_back) << "both hold it";
  });
  std::this_thread::sleep_for(100ms);
  given_back = true;
  first.reset();
}

TEST_F(directory_locks, of_stopped_processes_are_not_waited_for) {
  const directory_lock first(path);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(directory_lock(path, 50ms)) << "it does without";
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
}

TEST_F(directory_locks, exist_only_in_existing_directories) {
  EXPECT_FALSE(directory_lock(path + "/none"));
  std::filesystem::create_directory(path + "/one");
  std::filesystem::create_symlink(path + "/one", path + "/link");
  EXPECT_FALSE(directory_lock(path + "/link"));
  EXPECT_TRUE(directory_lock(path + "/one"));
}

// A rank that comes while the directory is removed creates it anew.
TEST_F(directory_locks, in_a_removed_directory_do_not_count) {
  const std::string gone = path + "/gone";
  std::filesystem::create_directory(gone);
  std::optional<directory_lock> first(gone);
  std::jthread other([&] { EXPECT_FALSE(directory_lock(gone, 100s)); });
  std::this_thread::sleep_for(100ms);
  std::filesystem::remove(gone);
  first.reset();
}

}  // namespace
