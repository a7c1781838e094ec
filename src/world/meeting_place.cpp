#include "meeting_place.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/core/system_message.hpp"

namespace untax {
namespace {

std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

enum class finding : std::uint8_t { nothing, private_directory, something_else };

// A single lstat is used, since other ranks create and remove the directory meanwhile.
finding look_at(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    return errno == ENOENT ? finding::nothing : finding::something_else;
  }
  const bool ours = S_ISDIR(status.st_mode) && status.st_uid == geteuid();
  return ours && (status.st_mode & 077U) == 0 ? finding::private_directory
                                              : finding::something_else;
}

// Throws unless `path` is a private directory of this user, or does not exist.
void require_private(const std::string& path) {
  if (look_at(path) != finding::something_else) return;
  throw error(
      errc::invalid_argument,
      fmt::format(
          "{} is not a directory that belongs to this user alone (mode 0700); {} can name another",
          path, variable::rendezvous.name));
}

enum class making : std::uint8_t { made, was_there, no_parent };

making make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return making::made;
  if (errno == ENOENT) return making::no_parent;
  if (errno != EEXIST) {
    throw error(errc::invalid_argument,
                fmt::format("{} cannot be made: {}; {} can name another directory", path,
                            system_message(errno), variable::rendezvous.name));
  }
  require_private(path);
  return making::was_there;
}

std::string base_directory(const environment& env) {
  const std::string root = runtime_directory(env);
  return root == "/tmp" ? fmt::format("/tmp/untax-{}", geteuid()) : root + "/untax";
}

/// The suffix of the names of a launch's sockets.
std::string mark_of(std::string_view launch) { return fmt::format("-{:016x}", hash_of(launch)); }

bool is_socket(const std::filesystem::directory_entry& entry, std::string_view start) {
  return entry.path().filename().string().starts_with(start) && entry.is_socket();
}

void remove_dead(const std::string& socket) {
  if (!unix_socket::answers(socket)) unlink(socket.c_str());
}

// Numbers the worlds that this process makes, so that they meet at different sockets.
int next_world() {
  static std::atomic<int> count{0};
  return count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::string runtime_directory(const environment& env) {
  const auto runtime = env.text(variable::runtime_directory);
  return runtime && is_private_directory(*runtime) ? *runtime : "/tmp";
}

bool is_private_directory(const std::string& path) noexcept {
  return look_at(path) == finding::private_directory;
}

meeting_place::meeting_place(const placement& p, const environment& env) {
  if (p.rendezvous.empty()) {
    base_ = base_directory(env);
    directory_ = fmt::format("{}/{:016x}", base_, hash_of(p.job));
  } else {
    directory_ = p.rendezvous;
  }
  kind_ = p.once ? "world-once" : fmt::format("world-{}", next_world());
  socket_ = directory_ + "/" + kind_ + mark_of(p.launch);
}

void meeting_place::check() const { require_private(directory_); }

unix_socket meeting_place::open() {
  while (true) {
    make_directories();
    const directory_lock lock(directory_);
    if (!lock) continue;  // a job that ended has removed the directory
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (is_socket(entry, "world-")) remove_dead(entry.path());
    }
    auto listener = unix_socket::listen(socket_, lock);
    if (!listener) {
      throw error(errc::invalid_argument,
                  fmt::format("another job meets in {} at the moment; {} can name another "
                              "directory",
                              directory_, variable::rendezvous.name));
    }
    open_ = true;
    return std::move(*listener);
  }
}

int meeting_place::others() const {
  int count = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, none)) {
    if (is_socket(entry, kind_ + "-") && entry.path() != socket_) ++count;
  }
  return count;
}

void meeting_place::remove_sockets(const std::string& directory, std::string_view launch) noexcept {
  try {
    const directory_lock lock(directory);
    if (!lock) return;
    const std::string mark = mark_of(launch);
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const std::string path = entry.path();
      if (is_socket(entry, "world-") && path.ends_with(mark)) remove_dead(path);
    }
  } catch (const std::exception&) {
    // The sockets stay until the next job meets there.
  }
}

void meeting_place::make_directories() {
  if (base_.empty()) {
    const making outcome = make_directory(directory_);
    if (outcome == making::no_parent) {
      throw error(errc::invalid_argument,
                  fmt::format("{} is \"{}\", whose parent directory does not exist",
                              variable::rendezvous.name, directory_));
    }
    ours_ = outcome == making::made;
    return;
  }
  // A job that ends removes the base if it is empty, possibly between these two steps.
  do {
    if (make_directory(base_) == making::no_parent) {
      throw error(errc::invalid_argument, fmt::format("{} cannot be made", base_));
    }
  } while (make_directory(directory_) == making::no_parent);
  ours_ = true;
}

void meeting_place::close() noexcept {
  if (!open_ && !ours_) return;
  const directory_lock lock(directory_);
  if (std::exchange(open_, false)) unlink(socket_.c_str());
  if (!std::exchange(ours_, false)) return;
  rmdir(directory_.c_str());
  if (!base_.empty()) rmdir(base_.c_str());
}

}  // namespace untax
