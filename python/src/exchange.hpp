#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace untax::python {

namespace nb = nanobind;

/// Describes a tensor by the C functions that its type offers as `__dlpack_c_exchange_api__`
/// (DLPack 1.3), which takes some tens of nanoseconds. The tensor keeps the memory that `to` points
/// to. False if its type offers none.
[[nodiscard]] bool read_tensor(nb::handle tensor, nb::dlpack::dltensor& to);
/// As above, for a tensor to write to; false also if it is read-only.
[[nodiscard]] bool read_writable_tensor(nb::handle tensor, nb::dlpack::dltensor& to);
/// The current stream of a GPU, according to the type of such a tensor. Null: the default stream.
[[nodiscard]] void* current_stream(nb::handle tensor, const nb::dlpack::device& place);

}  // namespace untax::python
