#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "ops/common/device_operator.hpp"

namespace untax {

/// The operator for the numbers of rows above those of the one before it. It was planned for any
/// number of rows up to at least `rows`.
struct operator_up_to {
  std::int64_t rows = 0;
  std::shared_ptr<device_operator> op;
};

/// The operators of `ends` ends: `add(end, operators)` appends those of one, that of the most rows
/// first. The end with the most rows comes first, so that memory that plans share fits all of them.
/// If an end is out of memory, all ranks are, and all of them give back, together, what they have.
template <class Add>
[[nodiscard]] std::vector<operator_up_to> operators_of(std::size_t ends, const Add& add) {
  std::vector<operator_up_to> operators;
  try {
    for (std::size_t end = ends; end-- > 0;) add(end, operators);
  } catch (const error& e) {
    if (e.code() == errc::out_of_memory) {
      while (!operators.empty()) operators.pop_back();
    }
    throw;
  }
  std::ranges::reverse(operators);
  return operators;
}

/// An operator on GPUs that was planned for any number of rows up to a capacity: one for each end
/// of a table (`row_ends`), made when it is planned; bulk_library may be the same one for several.
/// Each has its own kernel, lists, counters and rooms. So a run of one does not affect the others,
/// and what is proved of each by itself holds in any sequence. A run uses the first that was made
/// for at least as many rows.
class row_operators final : public device_operator {
 public:
  /// `by_rows` is ascending; the last one is that of the capacity.
  explicit row_operators(std::vector<operator_up_to> by_rows)
      : by_rows_(std::move(by_rows)), now_(by_rows_.back().op.get()) {}

  void set_rows(std::int64_t rows) override {
    now_ = std::ranges::lower_bound(by_rows_, rows, {}, &operator_up_to::rows)->op.get();
    now_->set_rows(rows);
  }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    now_->run(a, weights, c, stream);
  }
  /// The pattern for the capacity.
  [[nodiscard]] pattern how() const override { return by_rows_.back().op->how(); }
  [[nodiscard]] std::string text() const override {
    return fmt::format("any number of rows up to {} by {} plans; with the most: {}",
                       by_rows_.back().rows, by_rows_.size(), by_rows_.back().op->text());
  }

 private:
  std::vector<operator_up_to> by_rows_;
  device_operator* now_;
};

}  // namespace untax
