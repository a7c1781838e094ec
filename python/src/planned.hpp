#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <untax/untax.h>

#include "handles.hpp"
#include "raise.hpp"

namespace untax::python {

namespace nb = nanobind;

/// An operator of the C ABI as a Python object.
class planned {
 public:
  planned(std::shared_ptr<open_operator> op, bool on_gpu)
      : shared_(std::move(op)), on_gpu_(on_gpu) {}

  /// Raises InvalidArgument if the operator, or its world, was closed.
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
  /// Runs the operator without the lock of the interpreter. The operator lives until the run
  /// returns, also if another thread closes it.
  void run(void* stream, std::span<const untax_operand> operands) const {
    const std::shared_ptr<open_operator> kept = shared_;
    untax_operator* const op = open();
    if (on_gpu_ && !kept->captured) kept->captured = untax_stream_is_captured(stream) != 0;
    checked([&] {
      return untax_operator_run(op, operands.data(), static_cast<std::int32_t>(operands.size()),
                                stream);
    });
  }
  /// Whether a graph has a run of this operator.
  [[nodiscard]] bool captured() const noexcept { return shared_ && shared_->captured; }
  /// Promises that no graph with a run of this operator is replayed any more.
  void release_captured() noexcept {
    if (shared_) shared_->captured = false;
  }
  [[nodiscard]] view_pin pin() const {
    (void)open();
    return pinned(shared_, shared_->owner());
  }
  [[nodiscard]] bool on_gpu() const noexcept { return on_gpu_; }

 private:
  std::shared_ptr<open_operator> shared_;
  bool on_gpu_;
};

}  // namespace untax::python
