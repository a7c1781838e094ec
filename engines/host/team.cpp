#include "engines/host/team.hpp"

#include <chrono>
#include <utility>

#include <untax/flow/interrupt.hpp>

#include "src/core/start_threads.hpp"

namespace untax::host {
namespace {

constexpr std::chrono::milliseconds interrupt_interval{50};

}  // namespace

team::team(int workers, launch_mode mode, std::string owner, std::function<void(const error&)> stop)
    : mode_(mode), owner_(std::move(owner)), stop_(std::move(stop)) {
  if (mode_ == launch_mode::eager) return;
  try {
    start_threads(threads_, workers - 1, owner_, [this](int i) { serve(i + 1); });
  } catch (const error&) {
    leave();
    throw;
  }
}

team::~team() { leave(); }

void team::leave() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  join_all();
}

void team::join_all() {
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void team::launch_eagerly(int workers) {
  try {
    start_threads(threads_, workers, owner_, [this](int worker) { run_guarded(worker); });
  } catch (const error& e) {
    stop_(e);
    join_all();
    throw;
  }
  join_all();
}

void team::launch(int workers, const std::function<void(int)>& body) {
  failure_ = nullptr;
  body_ = &body;
  if (mode_ == launch_mode::eager) {
    launch_eagerly(workers);
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
      const auto ended = [this] { return running_ == 0; };
      while (!done_.wait_for(lock, interrupt_interval, ended)) {
        if (!interrupted()) continue;
        lock.unlock();
        stop_(error(errc::aborted, owner_ + ": interrupted by a signal during a run"));
        lock.lock();
      }
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
