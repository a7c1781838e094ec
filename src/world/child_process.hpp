#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor.hpp"

namespace untax {

/// A program and its surroundings, in the form that exec wants.
struct program {
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< "NAME=value", complete
  bool collect_output = false;
};

/// A child process. It dies with the thread that started it, and is killed and buried when this
/// object goes. Nothing here waits for it: also on its way to the program it may stop or hang.
class child_process {
 public:
  /// Throws `out_of_memory` if there can be no other process.
  explicit child_process(const program& p);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  ~child_process();

  void signal(int number) const noexcept;
  /// Looks whether the process has ended. Throws `invalid_argument` if that is because the program
  /// could not be started.
  [[nodiscard]] bool ended();
  /// Its status as wait(2) gives it, after it has ended. Nothing if it went to somebody else in
  /// this process, who waits for any child.
  [[nodiscard]] std::optional<int> status() const noexcept { return status_; }
  /// Readable when it has ended; -1 if the kernel does not offer that.
  [[nodiscard]] int number() const noexcept { return handle_.get(); }
  /// Readable when there is output; -1 if it is not collected, or complete.
  [[nodiscard]] int output_number() const noexcept { return output_.get(); }
  /// Passes on the lines that have arrived; `last` also what has no end of line.
  void read_output(const std::function<void(std::string_view line)>& line, bool last);

 private:
  void bury() noexcept;
  void require_started();

  std::string name_;
  int process_ = -1;
  bool ended_ = false;
  std::optional<int> status_;
  descriptor handle_;
  descriptor failure_;  // closes when the program starts, and holds the reason when it does not
  descriptor output_;
  std::string unfinished_;  // the start of a line whose end has not arrived
};

}  // namespace untax
