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

/// A Unix socket that preserves packets (SOCK_SEQPACKET). A function returns nothing or false if it
/// fails because of the other side. For other errors it throws `untax::error`.
class unix_socket {
 public:
  /// The process and user at the other end, from the kernel.
  struct credentials {
    int process = 0;  ///< 0 if its process namespace cannot be seen from here
    unsigned user = 0;
  };
  struct packet {
    std::size_t bytes = 0;                  ///< 0: the other side has closed
    std::vector<descriptor> attachments{};  ///< the descriptors that came with the packet
  };

  /// Listens at `path`, whose directory has to exist. Nothing if another process listens there.
  /// Removes a socket without a listener. `lock` protects a socket that another process has bound
  /// but does not listen at yet; the first overload takes the lock itself for a moment.
  [[nodiscard]] static std::optional<unix_socket> listen(const std::string& path);
  [[nodiscard]] static std::optional<unix_socket> listen(const std::string& path,
                                                         const directory_lock& lock);
  /// Whether a process listens at `path`, also if its queue of connections is full.
  [[nodiscard]] static bool answers(const std::string& path);
  /// Connects to `path`. Nothing if no process listens there.
  [[nodiscard]] static std::optional<unix_socket> connect(const std::string& path);

  /// The next connection; nothing if none is waiting.
  [[nodiscard]] std::optional<unix_socket> accept() const;
  [[nodiscard]] credentials other_side() const;
  /// The largest number of descriptors that a packet can carry.
  static constexpr std::size_t most_attachments = 128;
  /// Sends one packet. False if it cannot be sent: the other side has gone. Does not wait.
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
