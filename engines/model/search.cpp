#include "engines/model/search.hpp"

#include <fmt/format.h>

#include <mutex>
#include <sstream>

#include <untax/core/error.hpp>

#include "engines/model/fixture.hpp"

namespace untax::model {
namespace {

runner choose(strategy how, int threads) {
  switch (how) {
    case strategy::random:
      return random_runner(threads);
    case strategy::bounded:
      return bounded_runner(threads);
    case strategy::exhaustive:
      return exhaustive_runner(threads);
  }
  return nullptr;
}

rl::test_params parameters(const budget& limits, std::ostream& log) {
  rl::test_params params;
  params.output_stream = &log;
  params.progress_stream = &log;
  // Without this Relacy would run a failed execution again, to print its history.
  params.output_history = true;
  params.context_bound = limits.switches;
  params.execution_depth_limit = static_cast<unsigned>(limits.depth);
  if (limits.how == strategy::random) {
    params.search_type = rl::random_scheduler_type;
    params.initial_state = std::to_string(limits.seed) + " ";
    params.iteration_count = limits.seed + limits.executions - 1;
  } else {
    params.search_type = limits.how == strategy::bounded ? rl::fair_context_bound_scheduler_type
                                                         : rl::fair_full_search_scheduler_type;
  }
  return params;
}

std::string explain(rl::test_result_e result, const search_state& state) {
  std::string text;
  switch (result) {
    case rl::test_result_user_assert_failed:
      text = state.why;
      break;
    case rl::test_result_data_race:
      text = "two accesses to the same cell race";
      break;
    case rl::test_result_unitialized_access:
      text = "a cell is read that was never written";
      break;
    case rl::test_result_livelock:
      text = "the threads wait for ever";
      break;
    default:
      text = rl::test_result_str(result);
  }
  const std::string where = state.what->circumstances();
  return where.empty() ? text : text + "\n" + where;
}

}  // namespace

exploration search(subject& s, const budget& limits) {
  const int most = limits.how == strategy::random ? max_threads : max_threads_of_tree;
  if (s.threads() < 1 || s.threads() > most) {
    throw error(errc::invalid_argument,
                fmt::format("a model with {} threads cannot be explored: 1 to {} are possible",
                            s.threads(), most));
  }
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  search_state state{&s, limits.executions, 0, {}};
  current = &state;
  std::ostringstream log;
  rl::test_params params = parameters(limits, log);
  choose(limits.how, s.threads())(params);
  current = nullptr;

  const bool stopped = params.test_result == rl::test_result_until_condition_hit;
  exploration result;
  result.executions = state.executions;
  result.ok = stopped || params.test_result == rl::test_result_success;
  result.complete = !stopped && result.ok && limits.how != strategy::random;
  if (!result.ok) result.failure = explain(params.test_result, state);
  return result;
}

void fail(const std::string& why) {
  current->why = why;
  rl::ctx().fail_test("", rl::test_result_user_assert_failed, {});
  __builtin_unreachable();
}

}  // namespace untax::model
