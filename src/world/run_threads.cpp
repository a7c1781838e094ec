#include <exception>
#include <optional>
#include <thread>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "src/core/start_threads.hpp"

namespace untax {
namespace {

/// The end of a rank's body.
struct ending {
  std::exception_ptr failure;
  int reporter = -1;  // the rank that stopped the world; -1: none
};

// Takes the world by value, so that it is destroyed with the body: peers learn at once that the
// rank has finished or failed.
ending run_rank(world mine, const std::function<void(world&)>& body) {
  ending e;
  try {
    mine.run([&body](world& self) {
      self.use_device();
      body(self);
    });
  } catch (...) {
    e.failure = std::current_exception();
    const auto report = mine ? mine.state().report() : std::nullopt;
    if (report) e.reporter = report->reporter;
  }
  return e;
}

void rethrow_cause(const std::vector<ending>& endings) {
  for (const ending& e : endings) {
    const auto reporter = static_cast<std::size_t>(e.reporter);
    if (e.reporter >= 0 && endings[reporter].failure)
      std::rethrow_exception(endings[reporter].failure);
  }
  for (const ending& e : endings) {
    if (e.failure) std::rethrow_exception(e.failure);
  }
}

void run_all(std::vector<world> views, const std::function<void(world&)>& body) {
  std::vector<ending> endings(views.size());
  std::vector<std::thread> threads;
  const auto join_all = [&threads] {
    for (std::thread& t : threads) t.join();
  };
  try {
    start_threads(threads, static_cast<int>(views.size()), "a world of threads", [&](int r) {
      const auto rank = static_cast<std::size_t>(r);
      endings[rank] = run_rank(std::move(views[rank]), body);
    });
  } catch (const error& e) {
    // Not all threads could be started, so no thread has views.back().
    views.back().fail(e.code(), e.what());
    join_all();
    throw;
  }
  join_all();
  rethrow_cause(endings);
}

}  // namespace

void run_threads(int ranks, const std::function<void(world&)>& body, const world_options& options) {
  run_all(world::threads(ranks, options), body);
}

void run_gpus(int ranks, const std::function<void(world&)>& body, const world_options& options) {
  run_all(world::local_gpus(ranks, options), body);
}

}  // namespace untax
