#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor.hpp"

namespace untax {

/// A program of a child process with its environment, in the form that exec expects.
struct child_program {
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< "NAME=value", complete
  bool collect_output = false;
};

/// A child process. It dies with the thread that started it. The destructor kills and reaps it. No
/// other function waits for it, since the child may stop or hang even before exec.
class child_process {
 public:
  /// Throws `out_of_memory` if no process can be created.
  explicit child_process(const child_program& p);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  ~child_process();

  void signal(int number) const noexcept;
  /// Whether the process has ended; does not wait. Throws `invalid_argument` if it ended because
  /// the program could not be started.
  [[nodiscard]] bool ended();
  /// The status of wait(2) once the process has ended. Nothing if other code in this process, which
  /// waits for any child, has taken the status.
  [[nodiscard]] std::optional<int> status() const noexcept { return status_; }
  /// A descriptor that is readable when the process has ended; -1 if the kernel has none.
  [[nodiscard]] int number() const noexcept { return handle_.get(); }
  /// A descriptor that is readable when there is output; -1 if none is collected, or at its end.
  [[nodiscard]] int output_number() const noexcept { return output_.get(); }
  /// Calls `line` for each complete line that has arrived; with `last`, also for an incomplete one.
  void read_output(const std::function<void(std::string_view line)>& line, bool last);

 private:
  void bury() noexcept;
  void require_started();

  std::string name_;
  int process_ = -1;
  bool ended_ = false;
  std::optional<int> status_;
  descriptor handle_;
  descriptor failure_;  // closed by exec; holds the reason if the program does not start
  descriptor output_;
  std::string unfinished_;  // the start of a line whose end has not arrived
};

}  // namespace untax
