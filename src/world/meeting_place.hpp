#pragma once

#include <string>
#include <string_view>

#include <untax/core/environment.hpp>
#include <untax/world/placement.hpp>

#include "unix_socket.hpp"

namespace untax {

/// The directory, private to this user, in which the ranks of a job find the socket of rank 0. Rank
/// 0 opens it and closes it as soon as all have come, so that nothing is left in the file system
/// while the world works. Jobs with the same name meet in the same directory, at sockets that are
/// named after their launches: only ranks of the same launch find each other.
class meeting_place {
 public:
  /// Determines the directory and the socket of `p`. Creates nothing.
  meeting_place(const placement& p, const environment& env);
  meeting_place(const meeting_place&) = delete;
  meeting_place& operator=(const meeting_place&) = delete;
  ~meeting_place() { close(); }

  /// Throws `invalid_argument` if the directory exists and is not private to this user.
  void check() const;
  /// Creates the directory, or checks that the existing one is private to this user, and listens in
  /// it. Removes sockets of dead jobs. Throws `invalid_argument` if the directory is not private,
  /// or if another rank 0 of the same launch listens there.
  [[nodiscard]] unix_socket open();
  /// Removes the socket and the directories that `open` has created.
  void close() noexcept;

  [[nodiscard]] const std::string& socket_path() const noexcept { return socket_; }
  /// The number of other launches that meet here.
  [[nodiscard]] int others() const;

  /// Removes the sockets that dead ranks of `launch` left in `directory`.
  static void remove_sockets(const std::string& directory, std::string_view launch) noexcept;

 private:
  void make_directories();

  std::string base_;  // holds the directories of all jobs of this user; empty if the directory was
                      // prescribed
  std::string directory_;
  std::string kind_;  // prefix of the sockets of this world, for any launch
  std::string socket_;
  bool open_ = false;
  bool ours_ = false;  // this object created the directory, and removes it
};

/// XDG_RUNTIME_DIR, if it is private to this user, or /tmp.
[[nodiscard]] std::string runtime_directory(const environment& env);
/// Whether `path` is a directory that belongs to this user alone.
[[nodiscard]] bool is_private_directory(const std::string& path) noexcept;

}  // namespace untax
