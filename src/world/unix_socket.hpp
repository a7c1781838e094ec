#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "descriptor.hpp"
#include "directory_lock.hpp"

namespace untax {

/// A Unix socket that keeps packets apart (SOCK_SEQPACKET). Functions that can fail for the other
/// side's sake return nothing or false then; others throw `untax::error`.
class unix_socket {
 public:
  /// Who is at the other end, as the kernel says.
  struct credentials {
    int process = 0;  ///< 0 if it lives in a process namespace that cannot be seen from here
    unsigned user = 0;
  };
  struct packet {
    std::size_t bytes = 0;                  ///< 0: the other side has closed
    std::vector<descriptor> attachments{};  ///< the descriptors that came with it
  };

  /// Listens at `path`, whose directory has to be there. False if somebody else listens there; what
  /// nobody listens at is removed first. What another process has just made, and will listen at, is
  /// not taken for that: whoever listens holds `lock`, or here, for a moment, one of its own.
  [[nodiscard]] static std::optional<unix_socket> listen(const std::string& path);
  [[nodiscard]] static std::optional<unix_socket> listen(const std::string& path,
                                                         const directory_lock& lock);
  /// Whether somebody listens at `path`, also if no more callers are let in at the moment.
  [[nodiscard]] static bool answers(const std::string& path);
  /// Nothing if nobody listens at `path`.
  [[nodiscard]] static std::optional<unix_socket> connect(const std::string& path);

  /// The next connection; nothing if none is waiting.
  [[nodiscard]] std::optional<unix_socket> accept() const;
  [[nodiscard]] credentials other_side() const;
  /// At most this many descriptors go with a packet.
  static constexpr std::size_t most_attachments = 128;
  /// False if the other side has gone. Does not wait.
  bool send(std::span<const std::byte> data, std::span<const int> attachments = {}) const;
  /// The next packet, cut to the size of `data`; nothing if none is there yet.
  [[nodiscard]] std::optional<packet> receive(std::span<std::byte> data) const;
  /// Waits until there is something to accept or to receive. False after `milliseconds` (-1:
  /// never).
  [[nodiscard]] bool wait(int milliseconds) const;

  [[nodiscard]] int number() const noexcept { return socket_.get(); }

 private:
  explicit unix_socket(descriptor socket) noexcept : socket_(std::move(socket)) {}

  descriptor socket_;
};

}  // namespace untax
