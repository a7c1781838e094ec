#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <untax/world/world.hpp>

namespace untax::bench {

/// Ranks as threads that sleep between tasks, so that a reference measured in turn has the cores
/// for itself. (Ranks that meet at a barrier of the world poll it.)
class sleeping_ranks {
 public:
  sleeping_ranks(int ranks, const world_options& options);
  sleeping_ranks(const sleeping_ranks&) = delete;
  sleeping_ranks& operator=(const sleeping_ranks&) = delete;
  ~sleeping_ranks();

  /// Runs `task` at every rank and returns the seconds from the start of the first one to the end
  /// of the last one. Throws the exception of a task; the ranks cannot be used after that.
  double run(const std::function<void(world&)>& task);

 private:
  void stop();
  void serve(std::size_t rank);
  void perform(std::size_t rank);

  std::vector<world> worlds_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  const std::function<void(world&)>* task_ = nullptr;
  std::uint64_t tasks_ = 0;
  std::size_t running_ = 0;
  bool stopping_ = false;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace untax::bench
