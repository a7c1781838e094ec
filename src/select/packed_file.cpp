#include "src/select/packed_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

constexpr int gzip_alone = 16 + MAX_WBITS;
constexpr std::string_view gzip_mark = "\x1f\x8b";

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw error(errc::invalid_argument, fmt::format("{}: {}", path, what));
}

/// The state of zlib for a text that is compressed by gzip.
class unpacking {
 public:
  unpacking(const std::string& packed, const std::string& path) : packed_(packed), path_(path) {
    if (inflateInit2(&state_, gzip_alone) != Z_OK)
      throw error(errc::out_of_memory, fmt::format("{}: there is no memory to read it", path));
  }
  unpacking(const unpacking&) = delete;
  unpacking& operator=(const unpacking&) = delete;
  ~unpacking() { inflateEnd(&state_); }

  /// The whole text, which has at most `most` bytes.
  [[nodiscard]] std::string text(std::size_t most) {
    std::string unpacked;
    std::vector<char> buffer(std::size_t{1} << 16);
    for (;;) {
      const bool is_end = next(buffer);
      const std::size_t bytes = buffer.size() - state_.avail_out;
      if (unpacked.size() + bytes > most) {
        refuse(path_, fmt::format("unpacks to more than {}; such a file has at most that",
                                  size_text(most)));
      }
      unpacked.append(buffer.data(), bytes);
      if (is_end && !begins_another()) return unpacked;
    }
  }

 private:
  /// Fills the buffer as far as the input goes. Returns whether a compressed text has ended.
  bool next(std::vector<char>& buffer) {
    state_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    state_.avail_out = static_cast<uInt>(buffer.size());
    for (;;) {
      if (state_.avail_in == 0) {
        const std::size_t left = packed_.size() - taken_;
        const std::size_t part = std::min<std::size_t>(left, std::numeric_limits<uInt>::max());
        // zlib only reads the data at next_in.
        state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + taken_));
        state_.avail_in = static_cast<uInt>(part);
        taken_ += part;
      }
      const int code = inflate(&state_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) return true;
      if (code == Z_BUF_ERROR && ended()) refuse(path_, "its compressed data end too early");
      if (code != Z_OK && code != Z_BUF_ERROR) refuse(path_, "cannot be read; it may be damaged");
      if (state_.avail_out == 0) return false;
    }
  }
  [[nodiscard]] bool ended() const {
    return state_.avail_in == 0 && taken_ == packed_.size() && state_.avail_out > 0;
  }
  /// Whether another compressed text follows, as in files that were joined. Other following bytes
  /// are left out, as gzip does.
  bool begins_another() {
    const std::size_t at = taken_ - state_.avail_in;
    if (packed_.compare(at, gzip_mark.size(), gzip_mark) != 0) return false;
    return inflateReset(&state_) == Z_OK;
  }

  const std::string& packed_;
  const std::string& path_;
  std::size_t taken_ = 0;
  z_stream state_{};
};

}  // namespace

std::string unpacked_text_of_file(const std::string& path, const file_limits& limits) {
  std::string text = text_of_file(path, limits);
  if (!text.starts_with(gzip_mark)) return text;
  const std::size_t most =
      std::min(limits.bytes, std::max(bytes_at_once, text.size() * most_unpacked_ratio));
  return unpacking(text, path).text(most);
}

}  // namespace untax
