#include "engines/model/fixture.hpp"

namespace untax::model {

runner random_runner(int threads) {
  return runner_for<rl::random_scheduler, 2, 3, 4, 6, 8, max_threads>(threads);
}

}  // namespace untax::model
