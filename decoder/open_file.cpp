#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "decoder/safetensors.hpp"

namespace untax {

open_file::open_file(const std::filesystem::path& path) : path_(path.string()) {
  // Not to wait for a pipe's other end.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    const std::string reason = std::generic_category().message(errno);
    if (descriptor_ >= 0) ::close(descriptor_);
    throw error(errc::invalid_argument, fmt::format("{}: {}", path_, reason));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw error(errc::invalid_argument, fmt::format("{}: is no regular file", path_));
  }
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

open_file::open_file(open_file&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_) {}

open_file::~open_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void open_file::read(void* to, std::uint64_t bytes, std::uint64_t at) const {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;  // the kernel reads at most 2 GiB at once
  auto* target = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, target, std::min(bytes, most), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      throw error(
          errc::invalid_argument,
          fmt::format("{}: {}", path_,
                      got == 0 ? "ends early" : std::generic_category().message(errno).c_str()));
    }
    target += got;
    at += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
}

}  // namespace untax
