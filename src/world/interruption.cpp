#include "interruption.hpp"

#include <fcntl.h>

#include <atomic>
#include <cerrno>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/core/system_message.hpp"

namespace untax {
namespace {

std::atomic<int> pipe_to_write{-1};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" {  // without this, libuntax_c.so would export the name
static void note_signal(int number) {
  const int saved = errno;
  const auto note = static_cast<unsigned char>(number);
  // If the pipe is full, the signal is dropped: enough signals are in it.
  [[maybe_unused]] const auto written =
      ::write(pipe_to_write.load(std::memory_order_relaxed), &note, 1);
  errno = saved;
}
}

}  // namespace

interruption::interruption() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw error(errc::internal, fmt::format("cannot make a pipe: {}", system_message(errno)));
  }
  reader_.reset(ends[0]);
  writer_.reset(ends[1]);
  int nobody = -1;
  if (!pipe_to_write.compare_exchange_strong(nobody, writer_.get())) {
    throw error(errc::unsupported, "this process launches ranks already; one launch at a time");
  }
  for (std::size_t i = 0; i < signals.size(); ++i) {
    struct sigaction action {};
    sigaction(signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    sigaction(signals[i], &action, nullptr);
  }
}

interruption::~interruption() {
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  pipe_to_write.store(-1);
}

int interruption::take() const noexcept {
  unsigned char number = 0;
  return ::read(reader_.get(), &number, 1) == 1 ? number : 0;
}

kept_statuses::kept_statuses() {
  sigaction(SIGCHLD, nullptr, &before_);
  const bool ignored = (before_.sa_flags & SA_SIGINFO) == 0 && before_.sa_handler == SIG_IGN;
  const bool dropped = (static_cast<unsigned>(before_.sa_flags) & SA_NOCLDWAIT) != 0;
  if (!ignored && !dropped) return;
  struct sigaction keeping = before_;
  if (ignored) keeping.sa_handler = SIG_DFL;
  keeping.sa_flags = static_cast<int>(static_cast<unsigned>(before_.sa_flags) & ~SA_NOCLDWAIT);
  sigaction(SIGCHLD, &keeping, nullptr);
  changed_ = true;
}

kept_statuses::~kept_statuses() {
  if (changed_) sigaction(SIGCHLD, &before_, nullptr);
}

}  // namespace untax
