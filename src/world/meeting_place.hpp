#pragma once

#include <string>

#include <untax/core/environment.hpp>
#include <untax/world/placement.hpp>

#include "unix_socket.hpp"

namespace untax {

/// The directory, private to this user, in which the ranks of a job find the socket of rank 0. Rank
/// 0 opens it and closes it as soon as all have come, so that nothing is left in the file system
/// while the world works.
class meeting_place {
 public:
  /// Where the ranks of `p` meet; makes nothing.
  meeting_place(const placement& p, const environment& env);
  meeting_place(const meeting_place&) = delete;
  meeting_place& operator=(const meeting_place&) = delete;
  ~meeting_place() { close(); }

  /// Throws `invalid_argument` if the directory is there and does not belong to this user alone.
  void check() const;
  /// Makes the directory, or makes sure that the one that is there belongs to this user alone, and
  /// listens in it. Throws `invalid_argument` if it does not, or if another job listens there.
  [[nodiscard]] unix_socket open();
  /// Removes what `open` made.
  void close() noexcept;

  [[nodiscard]] const std::string& socket_path() const noexcept { return socket_; }

 private:
  void make_directories();

  std::string base_;  // holds the directories of all jobs of this user; empty if the directory was
                      // prescribed
  std::string directory_;
  std::string socket_;
  bool open_ = false;
  bool ours_ = false;  // the directory is, and goes when the place closes
};

}  // namespace untax
