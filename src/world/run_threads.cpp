#include <exception>
#include <string>
#include <system_error>
#include <thread>

#include <untax/world/launch.hpp>

namespace untax {
namespace {

/// How the body of a rank ended.
struct ending {
  std::exception_ptr failure;
  int reporter = -1;  // the rank that stopped the world, as seen from here
};

// Takes the world by value: it ends with the body, so that peers learn at once that the rank has
// finished or failed.
ending run_rank(world mine, const std::function<void(world&)>& body) {
  ending e;
  try {
    mine.run([&body](world& self) {
      self.use_device();
      body(self);
    });
  } catch (...) {
    e.failure = std::current_exception();
    if (const auto report = mine.state().report()) e.reporter = report->reporter;
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
    for (std::size_t rank = 0; rank < views.size(); ++rank) {
      threads.emplace_back([&, rank] { endings[rank] = run_rank(std::move(views[rank]), body); });
    }
  } catch (const std::system_error& e) {
    // views.back() was given to no thread, since not all could be started.
    views.back().fail(errc::out_of_memory,
                      std::string("not all rank threads could be started: ") + e.what());
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
