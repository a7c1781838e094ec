#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/pattern.hpp>

#include "ops/common/operator_trial.hpp"

namespace untax {

/// The pattern of operators that send nothing, and so have no choice of pattern.
inline constexpr pattern lone_pattern = pattern::fused_sequential;

/// An operator that sends nothing, with a plan as trials expect one.
template <class Operator>
class lone_operator {
 public:
  struct plan_of_one {
    pattern how = lone_pattern;
  };

  explicit lone_operator(Operator op) : op_(std::move(op)) {}

  [[nodiscard]] Operator& get() noexcept { return op_; }
  [[nodiscard]] plan_of_one plan() const noexcept { return {}; }
  [[nodiscard]] const std::string& explain() const noexcept { return op_.explain(); }

 private:
  Operator op_;
};

/// The `make` of a subject whose operator sends nothing. `Trial` takes a world, a problem, options
/// and a seed.
template <class Trial>
[[nodiscard]] auto maker_of_lone_trials(std::string_view name,
                                        const typename Trial::problem_type& problem,
                                        const typename Trial::options_type& options) {
  return [=](world& w, pattern how, std::uint64_t seed) -> std::unique_ptr<trial> {
    if (how != pattern::automatic && how != lone_pattern) {
      throw error(errc::invalid_argument,
                  fmt::format("rank {}: {}: has no pattern {}; it sends nothing, so it has only {}",
                              w.rank(), name, name_of(how), name_of(lone_pattern)));
    }
    return std::make_unique<Trial>(w, problem, options, seed);
  };
}

}  // namespace untax
