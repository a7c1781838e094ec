#include "meeting_place.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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

// One look, since other ranks make and remove the directory in the meantime.
finding look_at(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    return errno == ENOENT ? finding::nothing : finding::something_else;
  }
  const bool ours = S_ISDIR(status.st_mode) && status.st_uid == geteuid();
  return ours && (status.st_mode & 077U) == 0 ? finding::private_directory
                                              : finding::something_else;
}

// Throws unless `path` is a directory of ours, or nothing at all.
void require_private(const std::string& path) {
  if (look_at(path) != finding::something_else) return;
  throw error(errc::invalid_argument,
              fmt::format("{} is no directory that belongs to this user alone (mode 0700); {} can "
                          "name another",
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
  const auto runtime = env.text(variable::runtime_directory);
  if (runtime && look_at(*runtime) == finding::private_directory) return *runtime + "/untax";
  return fmt::format("/tmp/untax-{}", geteuid());
}

// Worlds that a process makes one after another must not be mixed up.
int next_world() {
  static std::atomic<int> made{0};
  return made.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

meeting_place::meeting_place(const placement& p, const environment& env) {
  if (p.rendezvous.empty()) {
    base_ = base_directory(env);
    directory_ = fmt::format("{}/{:016x}", base_, hash_of(p.job));
  } else {
    directory_ = p.rendezvous;
  }
  socket_ = fmt::format("{}/world-{}", directory_, next_world());
}

void meeting_place::check() const { require_private(directory_); }

unix_socket meeting_place::open() {
  make_directories();
  auto listener = unix_socket::listen(socket_);
  if (!listener) {
    throw error(errc::invalid_argument,
                fmt::format("another job meets in {} at the moment; {} can name another directory",
                            directory_, variable::rendezvous.name));
  }
  open_ = true;
  return std::move(*listener);
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
  // A job that ends removes the base if it is empty, which may happen between the two steps.
  do {
    if (make_directory(base_) == making::no_parent) {
      throw error(errc::invalid_argument, fmt::format("{} cannot be made", base_));
    }
  } while (make_directory(directory_) == making::no_parent);
  ours_ = true;
}

void meeting_place::close() noexcept {
  if (std::exchange(open_, false)) unlink(socket_.c_str());
  if (!std::exchange(ours_, false)) return;
  rmdir(directory_.c_str());
  if (!base_.empty()) rmdir(base_.c_str());
}

}  // namespace untax
