#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include <untax/untax.h>

#include "plans.hpp"
#include "raise.hpp"

namespace untax::python {

namespace nb = nanobind;

/// Owns an operator of the C ABI. Python keeps the world as long as the operator.
class planned {
 public:
  planned(untax_operator* op, const plan_entry& entry, bool on_gpu)
      : handle_(op), entry_(&entry), on_gpu_(on_gpu) {}
  planned(const planned&) = delete;
  planned& operator=(const planned&) = delete;
  /// Waits for other ranks on GPUs, which may be threads of this interpreter.
  ~planned() {
    const nb::gil_scoped_release others_run;
    untax_operator_destroy(handle_);
  }

  [[nodiscard]] untax_operator* open() const {
    if (handle_ == nullptr) refuse("this operator is closed");
    return handle_;
  }
  [[nodiscard]] bool closed() const noexcept { return handle_ == nullptr; }
  void close() {
    if (handle_ == nullptr) return;
    checked([&] { return untax_operator_destroy(handle_); });
    handle_ = nullptr;
  }
  [[nodiscard]] const plan_entry& entry() const noexcept { return *entry_; }
  [[nodiscard]] bool on_gpu() const noexcept { return on_gpu_; }

 private:
  untax_operator* handle_;
  const plan_entry* entry_;
  bool on_gpu_;
};

}  // namespace untax::python
