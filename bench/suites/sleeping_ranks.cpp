#include "bench/suites/sleeping_ranks.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <untax/memory/host_memory.hpp>

#include "src/core/start_threads.hpp"

namespace untax::bench {

sleeping_ranks::sleeping_ranks(int ranks, const world_options& options)
    : worlds_(world::threads(ranks, options)) {
  try {
    start_threads(threads_, ranks, "untax bench",
                  [this](int rank) { serve(static_cast<std::size_t>(rank)); });
  } catch (...) {
    stop();
    throw;
  }
}

sleeping_ranks::~sleeping_ranks() { stop(); }

void sleeping_ranks::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

double sleeping_ranks::run(const std::function<void(world&)>& task) {
  std::unique_lock lock(mutex_);
  task_ = &task;
  running_ = worlds_.size();
  begin_ = std::numeric_limits<std::uint64_t>::max();
  end_ = 0;
  ++tasks_;
  work_.notify_all();
  done_.wait(lock, [this] { return running_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return static_cast<double>(end_ - begin_) * 1e-9;
}

void sleeping_ranks::serve(std::size_t rank) {
  for (std::uint64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return stopping_ || tasks_ != seen; });
      if (stopping_) return;
      seen = tasks_;
    }
    perform(rank);
  }
}

void sleeping_ranks::perform(std::size_t rank) {
  std::exception_ptr failure;
  const std::uint64_t begin = host_memory::now();
  try {
    worlds_[rank].run(*task_);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::uint64_t end = host_memory::now();
  const std::scoped_lock lock(mutex_);
  begin_ = std::min(begin_, begin);
  end_ = std::max(end_, end);
  if (failure && !failure_) failure_ = failure;
  if (--running_ == 0) done_.notify_one();
}

}  // namespace untax::bench
