#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ops/common/device_operator.hpp"

namespace untax {

/// What `automatic` chose, and why.
class reasoned_operator final : public device_operator {
 public:
  /// `libraries` is kept as long as this is: NCCL takes long to connect ranks, so the next operator
  /// that is timed finds them connected.
  reasoned_operator(std::shared_ptr<device_operator> chosen, std::string reason,
                    std::shared_ptr<const void> libraries)
      : libraries_(std::move(libraries)), chosen_(std::move(chosen)), reason_(std::move(reason)) {}

  void set_rows(std::int64_t rows) override { chosen_->set_rows(rows); }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    chosen_->run(a, weights, c, stream);
  }
  [[nodiscard]] pattern how() const override { return chosen_->how(); }
  [[nodiscard]] std::string text() const override { return chosen_->text() + "; " + reason_; }

 private:
  std::shared_ptr<const void> libraries_;
  std::shared_ptr<device_operator> chosen_;
  std::string reason_;
};

}  // namespace untax
