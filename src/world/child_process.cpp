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

/// Blocks all signals in this thread during its lifetime. A child that is forked meanwhile starts
/// with signals blocked, so that no handler of this process runs in it.
class deafness {
 public:
  deafness() {
    sigset_t signals;
    sigfillset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, &before_);
  }
  deafness(const deafness&) = delete;
  deafness& operator=(const deafness&) = delete;
  ~deafness() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  [[nodiscard]] const sigset_t& before() const noexcept { return before_; }

 private:
  sigset_t before_{};
};

/// Called in the child: gives handled signals their default action, keeps ignored signals ignored,
/// and sets the mask.
void hear_without_handlers(const sigset_t& mask) {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

// Runs in the child, between fork and exec: only calls that are safe after the fork of a process
// with threads.
[[noreturn]] void become(char* const* command, char* const* environment, const sigset_t& mask,
                         int launcher, int output, int failure) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  hear_without_handlers(mask);
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

child_process::child_process(const child_program& p) : name_(p.command.front()) {
  const std::vector<char*> command = pointers_to(p.command);
  const std::vector<char*> environment = pointers_to(p.environment);
  pipe_ends failure = make_pipe();
  pipe_ends output;
  if (p.collect_output) output = make_pipe();
  const int launcher = getpid();
  {
    const deafness no_signals;
    process_ = fork();
    if (process_ == 0) {
      become(command.data(), environment.data(), no_signals.before(), launcher, output.writer.get(),
             failure.writer.get());
    }
  }
  if (process_ < 0) {
    throw error(errc::out_of_memory,
                fmt::format("cannot make a process: {}. Raise the limit of processes (ulimit -u, "
                            "pids.max of a container) or of memory, or ask for fewer",
                            system_message(errno)));
  }
  handle_.reset(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));
  failure_ = std::move(failure.reader);
  fcntl(failure_.get(), F_SETFL, O_NONBLOCK);
  output_ = std::move(output.reader);
  if (output_) fcntl(output_.get(), F_SETFL, O_NONBLOCK);
}

child_process::child_process(child_process&& other) noexcept
    : name_(std::move(other.name_)),
      process_(std::exchange(other.process_, -1)),
      ended_(other.ended_),
      status_(other.status_),
      handle_(std::move(other.handle_)),
      failure_(std::move(other.failure_)),
      output_(std::move(other.output_)),
      unfinished_(std::move(other.unfinished_)) {}

child_process::~child_process() {
  if (process_ < 0) return;
  bury();
  if (ended_) return;
  signal(SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void child_process::signal(int number) const noexcept {
  if (ended_) return;
  // The process id may have been reused if other code reaped the child; the handle cannot.
  if (handle_) {
    syscall(SYS_pidfd_send_signal, handle_.get(), number, nullptr, 0);
  } else {
    kill(process_, number);
  }
}

void child_process::bury() noexcept {
  if (ended_) return;
  int status = 0;
  const int result = waitpid(process_, &status, WNOHANG);
  if (result == process_) status_ = status;
  ended_ = result == process_ || (result < 0 && errno == ECHILD);
}

bool child_process::ended() {
  bury();
  // If the program could not start, the reason was written before the child ended.
  if (ended_) require_started();
  return ended_;
}

void child_process::require_started() {
  int why = 0;
  if (!failure_ || read(failure_.get(), &why, sizeof why) != sizeof why) return;
  failure_.reset();
  throw error(errc::invalid_argument,
              fmt::format("cannot start {}: {}", name_, system_message(why)));
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
