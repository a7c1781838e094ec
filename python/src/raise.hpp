#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include <untax/untax.h>

namespace untax::python {

namespace nb = nanobind;

/// Throws untax.Error, or its subclass for the status, as a Python exception. The text may not be
/// UTF-8: the library cuts long texts anywhere, also inside a character.
[[noreturn]] inline void raise(std::int32_t status, const std::string& text, std::int32_t suspect) {
  const nb::object said =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (!said.is_valid()) nb::raise_python_error();
  const nb::object error =
      nb::module_::import_("untax.errors").attr("made")(untax_status_name(status), said, suspect);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

[[noreturn]] inline void refuse(const std::string& text) {
  raise(untax_invalid_argument, text, -1);
}

/// Raises the failure of a call of the C ABI, but first the exception of a signal handler that ran
/// while the call waited.
inline void raise_if_failed(std::int32_t status) {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (status == untax_ok) return;
  const untax_error_info e = untax_last_error();
  raise(status, e.text, e.suspect);
}

/// Calls the C ABI without the interpreter's lock, since it may wait for other ranks, which may be
/// threads of this interpreter. Raises as `raise_if_failed`.
template <class Call>
void checked(const Call& call) {
  std::int32_t status = untax_ok;
  {
    const nb::gil_scoped_release others_run;
    status = call();
  }
  raise_if_failed(status);
}

}  // namespace untax::python
