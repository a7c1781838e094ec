#include "src/core/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

[[noreturn]] void refuse(std::string_view origin, const std::string& what) {
  throw error(errc::invalid_argument, fmt::format("{}: {}", origin, what));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// A descriptor that the destructor closes.
class descriptor {
 public:
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (number_ >= 0) close(number_);
  }
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

}  // namespace

std::string size_text(std::size_t bytes) {
  constexpr std::size_t mega = std::size_t{1} << 20;
  return bytes % mega == 0 ? fmt::format("{} MiB", bytes / mega) : fmt::format("{} bytes", bytes);
}

std::string text_of_file(const std::string& path, const file_limits& limits) {
  // A blocking open of a pipe waits for a writer.
  const descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0)
    refuse(path, fmt::format("cannot be opened ({})", std::generic_category().message(errno)));
  struct stat status {};
  if (fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode))
    refuse(path, fmt::format("is {}, not a regular file", kind_of(status.st_mode)));
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16);
  for (;;) {
    const ssize_t bytes = read(file.number(), buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0)
      refuse(path, fmt::format("cannot be read ({})", std::generic_category().message(errno)));
    if (bytes == 0) return text;
    if (text.size() + static_cast<std::size_t>(bytes) > limits.bytes)
      refuse(path, fmt::format("has more than {}; such a file has at most that",
                               size_text(limits.bytes)));
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
}

std::string_view utf8_text(std::string_view text, std::string_view origin) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    refuse(origin, "is UTF-16; save it as UTF-8");
  constexpr std::string_view mark = "\xef\xbb\xbf";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

std::string control_character_in(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool low = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    if (low || byte == 0x7f) return fmt::format("U+{:04X}", byte);
    // U+0080 to U+009F.
    if (byte != 0xc2 || i + 1 == text.size()) continue;
    const auto second = static_cast<unsigned char>(text[i + 1]);
    if (second >= 0x80 && second < 0xa0) return fmt::format("U+{:04X}", second);
  }
  return {};
}

}  // namespace untax
