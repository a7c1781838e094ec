#include "process_liveness.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill(2) is POSIX
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>

namespace untax {

process_liveness::process_liveness(const std::vector<int>& processes) {
  for (const int process : processes) {
    watched w;
    w.process = process;
    if (process > 0) {
      w.handle.reset(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
      w.lost = !w.handle && errno == ESRCH;
    }
    ranks_.push_back(std::move(w));
  }
}

bool process_liveness::alive(int rank) const noexcept {
  const watched& w = ranks_[static_cast<std::size_t>(rank)];
  if (w.lost) return false;
  if (w.handle) {
    pollfd entry{w.handle.get(), POLLIN, 0};
    return poll(&entry, 1, 0) <= 0;
  }
  return w.process <= 0 || kill(w.process, 0) == 0 || errno != ESRCH;
}

bool process_liveness::halted(int rank) const noexcept {
  const int process = ranks_[static_cast<std::size_t>(rank)].process;
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", process);
  const descriptor file(process > 0 ? open(path.data(), O_RDONLY | O_CLOEXEC) : -1);
  if (!file) return false;
  // "1234 (name) T ..."; the name has at most 16 characters, which can be any.
  std::array<char, 64> text{};
  const ssize_t bytes = read(file.get(), text.data(), text.size());
  const std::string_view start(text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  const auto name_end = start.rfind(") ");
  if (name_end == std::string_view::npos) return false;
  const std::string_view state = start.substr(name_end + 2, 1);
  return state == "T" || state == "t";
}

}  // namespace untax
