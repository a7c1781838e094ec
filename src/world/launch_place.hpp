#pragma once

#include <string>
#include <string_view>

namespace untax {

/// The prefix of the directories that launchers create. Each launch has a name of its own.
inline constexpr std::string_view launch_directory = "untax-launch-";

/// The directory in which the ranks of a launch meet, and the word that distinguishes launches.
/// Rank 0 makes the directory and removes it when all ranks have come. If ranks are killed before
/// that, the destructor removes their files. If this process is killed, too, the next launch of the
/// user removes them.
class launch_place {
 public:
  /// `prescribed` is the directory that the user has chosen. If it is empty, the place has a
  /// directory of its own, in XDG_RUNTIME_DIR or /tmp.
  explicit launch_place(const std::string& prescribed);
  launch_place(const launch_place&) = delete;
  launch_place& operator=(const launch_place&) = delete;
  ~launch_place();

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  /// The value of UNTAX_LAUNCH; empty if the directory alone identifies the launch.
  [[nodiscard]] const std::string& word() const noexcept { return word_; }

 private:
  std::string directory_;
  std::string word_;
  bool was_there_ = false;  // the directory existed before, so it is not removed
};

}  // namespace untax
