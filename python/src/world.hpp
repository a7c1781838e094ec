#pragma once

#include <nanobind/nanobind.h>

#include <untax/untax.h>

namespace untax::python {

namespace nb = nanobind;

/// Owns a world of the C ABI.
class world {
 public:
  explicit world(untax_world* w) : handle_(w) {}
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  /// May wait for other ranks, which may be threads of this interpreter.
  ~world() {
    const nb::gil_scoped_release others_run;
    untax_world_destroy(handle_);
  }

  /// Raises InvalidArgument if it was closed.
  [[nodiscard]] untax_world* open() const;
  [[nodiscard]] bool closed() const noexcept { return handle_ == nullptr; }
  void close();
  [[nodiscard]] bool on_gpu() const { return untax_world_device(open()) >= 0; }

 private:
  untax_world* handle_;
};

void bind_world(nb::module_& m);
void bind_operator(nb::module_& m);
void bind_known_calls(nb::module_& m);
void bind_trace(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_select(nb::module_& m);

}  // namespace untax::python
