#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include <untax/untax.h>

namespace untax::python {

namespace nb = nanobind;

using read_array = nb::ndarray<nb::ro>;
using written_array = nb::ndarray<>;

/// An array of Python as the C ABI takes it. It is anything that has DLPack or a buffer, or a tuple
/// (address, rows, columns, elements from row to row, type) from a caller that keeps the memory.
/// Raises InvalidArgument for a type that untax has not, for memory of another device than `on_gpu`
/// says, and for elements that do not lie as untax needs them.
[[nodiscard]] untax_const_matrix matrix_of(const char* name, nb::handle given, bool on_gpu,
                                           read_array& keeper);
[[nodiscard]] untax_matrix matrix_of(const char* name, nb::handle given, bool on_gpu,
                                     written_array& keeper);
[[nodiscard]] untax_const_array array_of(const char* name, nb::handle given, bool on_gpu,
                                         read_array& keeper);
[[nodiscard]] untax_array array_of(const char* name, nb::handle given, bool on_gpu,
                                   written_array& keeper);
/// The same of an operand with a name, which may also have elements of int32 or of 8 bits: rows of
/// a matrix, or elements of other arrays in one row. `name` has to outlive it.
[[nodiscard]] untax_operand operand_of(const char* name, nb::handle given, bool on_gpu,
                                       read_array& keeper);
[[nodiscard]] untax_operand operand_of(const char* name, nb::handle given, bool on_gpu,
                                       written_array& keeper);
/// Numbers of 32 bits that lie side by side, or an address; null for None.
[[nodiscard]] const std::int32_t* numbers_of(const char* name, nb::handle given, std::int64_t count,
                                             bool on_gpu, read_array& keeper);
/// Elements of one dimension that lie side by side in host memory, whatever they are. Raises
/// InvalidArgument for others.
void open_vector(const char* name, nb::handle given, read_array& keeper);
void open_vector(const char* name, nb::handle given, written_array& keeper);

}  // namespace untax::python
