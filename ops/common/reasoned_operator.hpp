#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ops/common/device_operator.hpp"

namespace untax {

/// What `automatic` chose, and why.
class reasoned_operator final : public device_operator {
 public:
  reasoned_operator(std::unique_ptr<device_operator> chosen, std::string reason)
      : chosen_(std::move(chosen)), reason_(std::move(reason)) {}

  void set_rows(std::int64_t rows) override { chosen_->set_rows(rows); }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    chosen_->run(a, weights, c, stream);
  }
  [[nodiscard]] pattern how() const override { return chosen_->how(); }
  [[nodiscard]] std::string text() const override { return chosen_->text() + "; " + reason_; }

 private:
  std::unique_ptr<device_operator> chosen_;
  std::string reason_;
};

}  // namespace untax
