#pragma once

#include <string>
#include <string_view>

namespace untax {

/// Begins the names of directories that launchers choose: no two launches have the same.
inline constexpr std::string_view launch_directory = "untax-launch-";

/// Where the ranks of one launch meet, and what tells them from those of others. Rank 0
/// makes the directory and removes it as soon as all have come, so there is none while the ranks
/// work; what is left if they were killed before goes with this object. If this process is killed,
/// too, the next launch of the user removes it.
class launch_place {
 public:
  /// `prescribed`: the directory to use, that of the user; empty for one of its own, in
  /// XDG_RUNTIME_DIR or /tmp.
  explicit launch_place(const std::string& prescribed);
  launch_place(const launch_place&) = delete;
  launch_place& operator=(const launch_place&) = delete;
  ~launch_place();

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  /// The value of UNTAX_LAUNCH; empty where the directory tells enough.
  [[nodiscard]] const std::string& word() const noexcept { return word_; }

 private:
  std::string directory_;
  std::string word_;
  bool was_there_ = false;  // so it is not removed
};

}  // namespace untax
