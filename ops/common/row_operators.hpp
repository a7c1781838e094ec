#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "ops/common/device_operator.hpp"
#include "ops/common/row_table.hpp"

namespace untax {

/// An operator on GPUs that was planned for any number of rows up to a capacity: one for each end
/// of a table (`row_ends`), made when it is planned. Each has its own kernel, lists, counters and
/// rooms. So a run of one does not affect the others, and what is proved of each by itself holds in
/// any sequence. A run uses the first that was made for at least as many rows.
class row_operators final : public device_operator {
 public:
  /// `make(rows)` makes one for each of `row_table`'s ends.
  template <class Make>
  row_operators(std::int64_t capacity, const Make& make)
      : table_(capacity, make), now_(table_.at(capacity).get()) {}

  void set_rows(std::int64_t rows) override {
    now_ = table_.at(rows).get();
    now_->set_rows(rows);
  }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    now_->run(a, weights, c, stream);
  }
  /// The pattern for the capacity.
  [[nodiscard]] pattern how() const override { return table_.at(table_.capacity())->how(); }
  [[nodiscard]] std::string text() const override {
    return fmt::format("any number of rows up to {} by {} plans; with the most: {}",
                       table_.capacity(), table_.ends().size(),
                       table_.at(table_.capacity())->text());
  }

 private:
  row_table<std::unique_ptr<device_operator>> table_;
  device_operator* now_;
};

}  // namespace untax
