#pragma once

#include <cstdint>
#include <memory>

namespace untax {

/// A part that the plans of one operator for different numbers of rows share, as long as one of
/// them has it. The plan for the most rows is the first to be made.
template <class Part>
class shared_by_plans {
 public:
  /// The part, for `rows` rows or more: the one that other plans have, or the result of `make()`.
  template <class Make>
  [[nodiscard]] std::shared_ptr<Part> get(std::int64_t rows, const Make& make) {
    std::shared_ptr<Part> part = known_.lock();
    if (part && rows <= rows_) return part;
    part = make();
    known_ = part;
    rows_ = rows;
    return part;
  }

 private:
  std::weak_ptr<Part> known_;
  std::int64_t rows_ = 0;
};

}  // namespace untax
