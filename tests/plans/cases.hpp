#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

// What the tests of plans look at: the same in every run, and with every library. The environment
// variable UNTAX_PLAN_SEEDS names so many more seeds.
namespace plans_test {

/// Numbers from a seed.
class numbers {
 public:
  explicit numbers(unsigned seed) : engine_(seed) {}
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  /// From 0 on.
  std::size_t below(std::size_t end) {
    return static_cast<std::size_t>((*this)(0, static_cast<std::int64_t>(end) - 1));
  }
  template <class T, std::size_t count>
  const T& one_of(const T (&all)[count]) {
    return all[(*this)(0, count - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

[[nodiscard]] const std::vector<unsigned>& seeds();

/// A plan, and what it was made for. `rank` plans the first of what it may choose from, or another.
struct planned_gather {
  untax::all_gather_gemm_problem problem;
  untax::operator_options options;
  int num_sms = 0;
  untax::gather_plan plan;
  untax::all_gather_gemm_protocol how;
  std::string text;
};
/// What all ranks of a world do: their first choices; for one of them also all others.
struct gather_case {
  std::vector<planned_gather> ranks;
  std::vector<planned_gather> others;
};
[[nodiscard]] const std::vector<gather_case>& gather_cases();

struct planned_scatter {
  untax::gemm_all_scatter_problem problem;
  untax::operator_options options;
  int num_sms = 0;
  untax::scatter_plan plan;
  untax::gemm_all_scatter_protocol how;
  std::string text;
};
struct scatter_case {
  std::vector<planned_scatter> ranks;
  std::vector<planned_scatter> others;
};
[[nodiscard]] const std::vector<scatter_case>& scatter_cases();

/// Calls `look(planned)` for all of them.
template <class Case, class Look>
void each_plan(const std::vector<Case>& cases, const Look& look) {
  for (const Case& c : cases) {
    for (const auto& p : c.ranks) look(p);
    for (const auto& p : c.others) look(p);
  }
}

}  // namespace plans_test
