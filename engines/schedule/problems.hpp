#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace untax::schedule {

/// The faults that a check found. Keeps the first few texts: one mistake in a protocol shows at
/// hundreds of steps.
class problem_list {
 public:
  void add(std::string text) {
    ++found_;
    if (texts_.size() < kept) texts_.push_back(std::move(text));
  }
  [[nodiscard]] bool empty() const noexcept { return found_ == 0; }
  /// The texts that were kept, and a last one that says how many were not.
  [[nodiscard]] std::vector<std::string> texts() const {
    auto lines = texts_;
    if (found_ > kept) lines.push_back("and " + std::to_string(found_ - kept) + " more");
    return lines;
  }

 private:
  static constexpr std::size_t kept = 12;
  std::size_t found_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace untax::schedule
