#include "directory_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "deadline.hpp"

namespace untax {

directory_lock::directory_lock(const std::string& directory,
                               std::chrono::milliseconds limit) noexcept
    : directory_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
  if (!directory_) return;
  const deadline end(limit);
  while (flock(directory_.get(), LOCK_EX | LOCK_NB) != 0) {
    // Some file systems have no such locks.
    if (errno != EWOULDBLOCK || end.passed()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  struct stat status {};
  const bool removed = fstat(directory_.get(), &status) == 0 && status.st_nlink == 0;
  if (removed) directory_.reset();
}

}  // namespace untax
