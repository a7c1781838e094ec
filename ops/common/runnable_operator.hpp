#pragma once

#include <memory>
#include <string>

#include "ops/common/operator_entry.hpp"

namespace untax {

/// Runs any operator class through one interface.
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
  [[nodiscard]] matrix result() const override {
    if constexpr (requires { op_.result(); }) return op_.result();
    return {};
  }

 private:
  Operator op_;
};

/// The `make` of an entry. `problem_of` converts a problem to the operator's own.
template <class Operator, class ProblemOf>
[[nodiscard]] auto maker_of(const ProblemOf& problem_of) {
  return [problem_of](world& w, const gemm_problem& p,
                      const operator_options& options) -> std::unique_ptr<runnable> {
    return std::make_unique<runnable_operator<Operator>>(w, problem_of(p), options);
  };
}

}  // namespace untax
