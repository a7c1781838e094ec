#include "engines/model/fixture.hpp"

namespace untax::model {

runner bounded_runner(int threads) {
  return runner_for<rl::context_bound_scheduler, 2, 3, max_threads_of_tree>(threads);
}

runner exhaustive_runner(int threads) {
  return runner_for<rl::full_search_scheduler, 2, 3, max_threads_of_tree>(threads);
}

}  // namespace untax::model
