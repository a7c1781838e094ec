#include "unix_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/core/system_message.hpp"

namespace untax {
namespace {

constexpr std::size_t attachment_space = CMSG_SPACE(unix_socket::most_attachments * sizeof(int));

[[noreturn]] void refuse(const std::string& what) {
  const int failure = errno;
  throw error(errc::internal, fmt::format("{}: {}", what, system_message(failure)));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw error(errc::invalid_argument,
                fmt::format("{}: the path of a socket has at most {} characters, this has {}", path,
                            sizeof address.sun_path - 1, path.size()));
  }
  path.copy(address.sun_path, path.size());
  return address;
}

descriptor make_socket() {
  descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) refuse("cannot make a socket");
  return made;
}

const sockaddr* plain(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

std::optional<unix_socket> unix_socket::listen(const std::string& path) {
  return listen(path, directory_lock(std::filesystem::path(path).parent_path()));
}

std::optional<unix_socket> unix_socket::listen(const std::string& path,
                                               const directory_lock& /*lock*/) {
  const sockaddr_un address = address_of(path);
  descriptor socket = make_socket();
  while (bind(socket.get(), plain(address), sizeof address) != 0) {
    if (errno != EADDRINUSE) refuse(path);
    if (answers(path)) return std::nullopt;
    if (unlink(path.c_str()) != 0 && errno != ENOENT) refuse(path);
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) refuse(path);
  return unix_socket(std::move(socket));
}

bool unix_socket::answers(const std::string& path) {
  const sockaddr_un address = address_of(path);
  const descriptor socket = make_socket();
  return ::connect(socket.get(), plain(address), sizeof address) == 0 || errno == EAGAIN;
}

std::optional<unix_socket> unix_socket::connect(const std::string& path) {
  const sockaddr_un address = address_of(path);
  descriptor socket = make_socket();
  if (::connect(socket.get(), plain(address), sizeof address) == 0)
    return unix_socket(std::move(socket));
  const bool nobody = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR;
  if (!nobody) refuse(path);
  return std::nullopt;
}

std::optional<unix_socket> unix_socket::accept() const {
  descriptor made(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (made) return unix_socket(std::move(made));
  // A connection that stays in the queue would wake every poll at once.
  if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
    refuse("cannot accept a rank's connection (ulimit -n)");
  return std::nullopt;
}

unix_socket::credentials unix_socket::other_side() const {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    refuse("cannot identify a peer");
  return {peer.pid, peer.uid};
}

bool unix_socket::send(std::span<const std::byte> data, std::span<const int> attachments) const {
  iovec part{const_cast<std::byte*>(data.data()), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char space[attachment_space] = {};
  if (!attachments.empty()) {
    message.msg_control = space;
    message.msg_controllen = CMSG_SPACE(attachments.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(attachments.size_bytes());
    std::memcpy(CMSG_DATA(header), attachments.data(), attachments.size_bytes());
  }
  return sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(data.size());
}

std::optional<unix_socket::packet> unix_socket::receive(std::span<std::byte> data) const {
  iovec part{data.data(), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char space[attachment_space] = {};
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  const ssize_t bytes = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  packet received;
  // Any other error, such as a reset, means that nothing more will come.
  received.bytes = bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int attachment = -1;
      std::memcpy(&attachment, CMSG_DATA(header) + i * sizeof attachment, sizeof attachment);
      received.attachments.emplace_back(attachment);
    }
  }
  return received;
}

bool unix_socket::wait(int milliseconds) const {
  pollfd entry{socket_.get(), POLLIN, 0};
  return poll(&entry, 1, milliseconds) > 0;
}

}  // namespace untax
