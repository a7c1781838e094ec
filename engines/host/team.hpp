#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/core/pattern.hpp>

namespace untax::host {

/// The threads that stand for the blocks of one rank.
///
/// `graph`: threads wait between launches, and the calling thread is worker 0, so a launch is a
/// wake-up, and a launch of one worker is a function call. `eager`: every launch creates its
/// threads and joins them.
class team {
 public:
  /// Errors begin with `owner`. If an eager launch gets only some of its threads, these run and may
  /// wait for the others: `stop` has to make them leave.
  ///
  /// Throws `out_of_memory` if threads cannot be made, here or in `launch`. None is left running.
  team(int workers, launch_mode mode, std::string owner, std::function<void(const error&)> stop);
  team(const team&) = delete;
  team& operator=(const team&) = delete;
  ~team();

  /// Runs body(0) ... body(workers - 1) at the same time and returns when all have ended; at most
  /// as many workers as the team has. The first exception of a worker is thrown again here.
  void launch(int workers, const std::function<void(int)>& body);

 private:
  void launch_eagerly(int workers);
  void join_all();
  void leave();
  void serve(int worker);
  void run_guarded(int worker) noexcept;

  launch_mode mode_;
  std::string owner_;
  std::function<void(const error&)> stop_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::uint64_t launches_ = 0;
  int active_ = 0;
  int running_ = 0;
  bool stopping_ = false;
  const std::function<void(int)>* body_ = nullptr;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace untax::host
