#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <utility>

#include <untax/untax.h>

#include "handles.hpp"
#include "plans.hpp"
#include "raise.hpp"

namespace untax::python {

namespace nb = nanobind;

/// An operator of the C ABI as Python has it.
class planned {
 public:
  planned(std::shared_ptr<open_operator> op, const run_entry& runs, bool on_gpu)
      : shared_(std::move(op)), runs_(&runs), on_gpu_(on_gpu) {}

  /// Raises InvalidArgument if it, or its world, was closed.
  [[nodiscard]] untax_operator* open() const {
    untax_operator* const op = shared_ ? shared_->handle() : nullptr;
    if (op == nullptr) refuse("this operator is closed");
    return op;
  }
  [[nodiscard]] bool closed() const noexcept { return !shared_ || shared_->handle() == nullptr; }
  void close() {
    if (shared_) shared_->captured = false;
    shared_.reset();
  }
  /// Calls `run(operator)` without the lock of the interpreter, for a run on a stream. The operator
  /// lives until it returns, also if another thread closes it.
  template <class Run>
  void run(void* stream, const Run& run) const {
    const std::shared_ptr<open_operator> kept = shared_;
    untax_operator* const op = open();
    if (on_gpu_ && !kept->captured) kept->captured = untax_stream_is_captured(stream) != 0;
    checked([&] { return run(op); });
  }
  /// Whether a graph has a run of it.
  [[nodiscard]] bool captured() const noexcept { return shared_ && shared_->captured; }
  /// Says that no graph that has a run of it is replayed any more.
  void release_captured() noexcept {
    if (shared_) shared_->captured = false;
  }
  [[nodiscard]] view_pin pin() const {
    (void)open();
    return pinned(shared_, shared_->owner());
  }
  [[nodiscard]] const run_entry& runs() const noexcept { return *runs_; }
  [[nodiscard]] bool on_gpu() const noexcept { return on_gpu_; }

 private:
  std::shared_ptr<open_operator> shared_;
  const run_entry* runs_;
  bool on_gpu_;
};

}  // namespace untax::python
