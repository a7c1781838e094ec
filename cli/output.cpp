#include "output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <initializer_list>
#include <system_error>

#include <fmt/format.h>

#include "terminal.hpp"

namespace untax::cli {
namespace {

/// The errno of the first failure; later failures follow from it.
int failure_of_stdout = 0;

void note_failure() {
  if (failure_of_stdout == 0) failure_of_stdout = errno == 0 ? EIO : errno;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n') || byte == 0x7f;
}

}  // namespace

void prepare_output() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // `open` returns the lowest free number, which is that of the closed stream. A stream that is
    // open for reading refuses writes.
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)open("/dev/null", O_RDONLY);
  }
  (void)std::signal(SIGPIPE, SIG_IGN);
}

void print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_failure();
}

void show(std::string_view text) { print(fitted(text, width(stream::out))); }

std::string counted(std::int64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_failure();
  // The reader of a pipe may close it early, as `head` does.
  if (failure_of_stdout == 0 || failure_of_stdout == EPIPE) return;
  throw output_lost(fmt::format("cannot write to stdout: {}; the output is not complete",
                                std::generic_category().message(failure_of_stdout)));
}

void complain(std::string_view text) {
  // The errno is saved here, since a later flush finds an empty buffer and no longer knows the
  // reason.
  errno = 0;
  if (std::fflush(stdout) != 0) note_failure();
  std::string line = fmt::format("untax: {}\n", text);
  std::ranges::replace_if(line, is_control, '?');
  std::fputs(line.c_str(), stderr);
}

void write_text(const std::string& path, std::string_view text) {
  if (path == "-") return print(text);
  std::FILE* file = std::fopen(path.c_str(), "w");
  bool whole = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int failure = errno;
  // A failure to write buffered data may show only here.
  if (file != nullptr && std::fclose(file) != 0 && whole) {
    whole = false;
    failure = errno;
  }
  if (!whole) {
    throw output_lost(fmt::format("cannot write {}: {}; the file is not complete", path,
                                  std::generic_category().message(failure)));
  }
}

}  // namespace untax::cli
