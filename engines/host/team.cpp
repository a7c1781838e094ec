#include "engines/host/team.hpp"

#include <utility>

namespace untax::host {

team::team(int workers, launch_mode mode) : mode_(mode) {
  if (mode_ == launch_mode::eager) return;
  threads_.reserve(static_cast<std::size_t>(workers - 1));
  for (int worker = 1; worker < workers; ++worker)
    threads_.emplace_back([this, worker] { serve(worker); });
}

team::~team() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void team::launch(int workers, const std::function<void(int)>& body) {
  failure_ = nullptr;
  body_ = &body;
  if (mode_ == launch_mode::eager) {
    for (int worker = 0; worker < workers; ++worker)
      threads_.emplace_back([this, worker] { run_guarded(worker); });
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  } else {
    if (workers > 1) {
      const std::scoped_lock lock(mutex_);
      active_ = workers;
      running_ = workers - 1;
      ++launches_;
      work_.notify_all();
    }
    run_guarded(0);
    if (workers > 1) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [this] { return running_ == 0; });
    }
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void team::serve(int worker) {
  for (std::uint64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return stopping_ || launches_ != seen; });
      if (stopping_) return;
      seen = launches_;
      if (worker >= active_) continue;
    }
    run_guarded(worker);
    const std::scoped_lock lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
}

void team::run_guarded(int worker) noexcept {
  try {
    (*body_)(worker);
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

}  // namespace untax::host
