#pragma once

#include <string>

#include "ops/common/workload.hpp"

namespace untax {

/// Lets an operator class be run without knowing which one it is.
template <class Operator>
class runnable_operator : public runnable {
 public:
  template <class Problem>
  runnable_operator(world& w, const Problem& problem, const operator_options& options)
      : op_(w, problem, options) {}

  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream) override {
    if constexpr (requires { op_.run(a, weights, c, stream); }) {
      op_.run(a, weights, c, stream);
    } else {
      op_.run(a, weights, c);
    }
  }
  [[nodiscard]] const protocol_plan& plan() const override { return op_.plan(); }
  [[nodiscard]] const std::string& explain() const override { return op_.explain(); }

 protected:
  [[nodiscard]] const Operator& op() const noexcept { return op_; }

 private:
  Operator op_;
};

}  // namespace untax
