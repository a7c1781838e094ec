#pragma once

#include <map>
#include <string>

#include <untax/memory/model_memory.hpp>

#include "engines/model/execution_array.hpp"
#include "engines/model/search.hpp"

namespace untax::litmus {

/// A litmus body under the model checker.
template <class Body>
class modelled final : public model::subject {
 public:
  [[nodiscard]] int threads() const override { return Body::threads; }
  void begin() override { body_.create(); }
  void thread(int index) override {
    body_[0].thread(index, [] {});
  }
  void end() override {
    ++outcomes_[body_[0].outcome()];
    if (body_[0].forbidden()) model::fail("forbidden outcome " + body_[0].outcome());
    body_.destroy();
  }

  /// Every outcome, and in how many executions it was reached.
  [[nodiscard]] const std::map<std::string, int>& outcomes() const { return outcomes_; }

 private:
  model::execution_array<Body> body_{1};
  std::map<std::string, int> outcomes_;
};

/// Explores all executions of a body.
template <class Body>
model::exploration explore_all() {
  modelled<Body> body;
  return model::search(
      body, {.how = model::strategy::exhaustive, .executions = 1'000'000, .depth = 2000});
}

/// Explores all executions in which a thread is interrupted at most `switches` times in all; for
/// bodies with loops, of which there are too many otherwise.
template <class Body>
model::exploration explore_bounded(unsigned switches) {
  modelled<Body> body;
  return model::search(body, {.how = model::strategy::bounded,
                              .executions = 1'000'000,
                              .switches = switches,
                              .depth = 2000});
}

/// Explores executions of a body by lot.
template <class Body>
model::exploration explore_some(std::uint64_t executions = 20'000) {
  modelled<Body> body;
  return model::search(body,
                       {.how = model::strategy::random, .executions = executions, .depth = 2000});
}

}  // namespace untax::litmus
