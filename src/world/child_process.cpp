#include "child_process.hpp"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill(2) is POSIX
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/core/system_message.hpp"

namespace untax {
namespace {

struct pipe_ends {
  descriptor reader;
  descriptor writer;
};

pipe_ends make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw error(errc::internal, fmt::format("cannot make a pipe: {}", system_message(errno)));
  }
  return {descriptor(ends[0]), descriptor(ends[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  // exec takes pointers to non-const for historical reasons and does not write through them.
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec: only calls that are safe after a fork of a process with
// threads.
[[noreturn]] void become(char* const* command, char* const* environment, int launcher, int output,
                         int failure) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(127);
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  execvpe(command[0], command, environment);
  const int why = errno;
  [[maybe_unused]] const auto written = write(failure, &why, sizeof why);
  _exit(127);
}

}  // namespace

child_process::child_process(const program& p) {
  const std::vector<char*> command = pointers_to(p.command);
  const std::vector<char*> environment = pointers_to(p.environment);
  pipe_ends failure = make_pipe();
  pipe_ends output;
  if (p.collect_output) output = make_pipe();
  const int launcher = getpid();
  process_ = fork();
  if (process_ < 0)
    throw error(errc::out_of_memory,
                fmt::format("cannot make a process: {}", system_message(errno)));
  if (process_ == 0)
    become(command.data(), environment.data(), launcher, output.writer.get(), failure.writer.get());

  // The pipe closes when exec succeeds, and holds the reason when it does not.
  failure.writer.reset();
  int why = 0;
  ssize_t bytes = 0;
  do {
    bytes = read(failure.reader.get(), &why, sizeof why);
  } while (bytes < 0 && errno == EINTR);
  if (bytes == sizeof why) {
    waitpid(process_, nullptr, 0);
    throw error(errc::invalid_argument,
                fmt::format("cannot start {}: {}", p.command.front(), system_message(why)));
  }
  handle_.reset(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));
  output_ = std::move(output.reader);
  if (output_) fcntl(output_.get(), F_SETFL, O_NONBLOCK);
}

child_process::child_process(child_process&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      status_(other.status_),
      handle_(std::move(other.handle_)),
      output_(std::move(other.output_)),
      unfinished_(std::move(other.unfinished_)) {}

child_process::~child_process() {
  if (process_ < 0 || ended()) return;
  signal(SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void child_process::signal(int number) const noexcept {
  if (!status_) kill(process_, number);
}

std::optional<int> child_process::ended() {
  int status = 0;
  if (!status_ && waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  return status_;
}

void child_process::read_output(const std::function<void(std::string_view line)>& line, bool last) {
  std::array<char, 4096> part{};
  while (output_) {
    const ssize_t bytes = read(output_.get(), part.data(), part.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) break;
    if (bytes <= 0) {
      output_.reset();
      break;
    }
    unfinished_.append(part.data(), static_cast<std::size_t>(bytes));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = unfinished_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      line(std::string_view(unfinished_).substr(begin, end - begin));
    }
    unfinished_.erase(0, begin);
  }
  if (last && !unfinished_.empty()) line(std::exchange(unfinished_, {}));
}

}  // namespace untax
