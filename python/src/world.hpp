#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include <untax/untax.h>

#include "handles.hpp"

namespace untax::python {

namespace nb = nanobind;

/// A world of the C ABI as a Python object.
class world {
 public:
  explicit world(untax_world* w) : shared_(std::make_shared<open_world>(w)) {}
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  /// May wait for other ranks, which may be threads of this interpreter.
  ~world() {
    const nb::gil_scoped_release others_run;
    (void)shared_->close();
  }

  /// Raises InvalidArgument if the world was closed.
  [[nodiscard]] untax_world* open() const;
  [[nodiscard]] const std::shared_ptr<open_world>& shared() const noexcept { return shared_; }
  [[nodiscard]] bool closed() const { return shared_->handle() == nullptr; }
  void close();
  [[nodiscard]] bool on_gpu() const { return untax_world_device(open()) >= 0; }

 private:
  std::shared_ptr<open_world> shared_;
};

void bind_world(nb::module_& m);
void bind_operator(nb::module_& m);
void bind_known_calls(nb::module_& m);
void bind_trace(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_select(nb::module_& m);
void bind_decoder(nb::module_& m);

}  // namespace untax::python
