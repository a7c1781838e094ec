#include "trace_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/trace/json.hpp>

namespace untax {
namespace {

/// Throws `code` for the last failure of the system.
[[noreturn]] void refuse(errc code, const std::string& path, const char* what) {
  const std::string reason = std::generic_category().message(errno);
  const char* const advice = code == errc::internal
                                 ? "the file is not complete"
                                 : "give a path in a folder that exists and that you may write to";
  throw error(code, fmt::format("the trace {} cannot be {} ({}); {}", path, what, reason, advice));
}

/// An open file under an exclusive lock, so no other rank reads or writes it meanwhile. Its errors
/// have the code `failure`, but for those of `replace`.
class locked_file {
 public:
  locked_file(const std::string& path, errc failure)
      : path_(path), descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) refuse(failure, path_, "written");
    while (flock(descriptor_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      const int reason = errno;
      ::close(descriptor_);
      errno = reason;
      refuse(failure, path_, "locked");
    }
  }
  locked_file(const locked_file&) = delete;
  locked_file& operator=(const locked_file&) = delete;
  ~locked_file() { ::close(descriptor_); }

  [[nodiscard]] std::string read_all() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return {};
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t got =
          pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
  }

  void replace(const std::string& text) const {
    // A pipe or a device cannot be truncated, and need not be.
    if (ftruncate(descriptor_, 0) != 0 && errno != EINVAL) refuse(errc::internal, path_, "written");
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t put = ::write(descriptor_, text.data() + done, text.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) refuse(errc::internal, path_, "written");
      done += static_cast<std::size_t>(put);
    }
  }

 private:
  std::string path_;
  int descriptor_;
};

/// The record that other ranks of the same operators have written, or an empty one.
trace_record written_by_peers(const std::string& text, const trace_record& mine) {
  if (text.empty()) return {};
  try {
    trace_record written = trace_from_json(text);
    const bool ours = std::ranges::any_of(written.operators, [&](const traced_operator& other) {
      return std::ranges::any_of(mine.operators, [&](const traced_operator& own) {
        return own.id == other.id && own.rank != other.rank;
      });
    });
    if (ours) return written;
  } catch (const error&) {
    // A file that is no trace is replaced.
    return {};
  }
  return {};
}

}  // namespace

void require_writable(const std::string& path) { locked_file file(path, errc::invalid_argument); }

trace_record write_trace(const std::string& path, trace_record mine) {
  const locked_file file(path, errc::internal);
  trace_record record = written_by_peers(file.read_all(), mine);
  std::ranges::move(mine.operators, std::back_inserter(record.operators));
  file.replace(to_trace_json(record));
  return record;
}

}  // namespace untax
