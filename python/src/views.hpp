#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include <untax/untax.h>

namespace untax::python {

namespace nb = nanobind;

using read_array = nb::ndarray<nb::ro>;
using written_array = nb::ndarray<>;

/// An array of Python as an operand of a run: any object with DLPack or a buffer, or a tuple
/// (address, rows, columns, elements from row to row, type) from a caller that keeps the memory:
/// rows of a matrix, or all elements of an array in one row. Errors call it `said`, if that is not
/// null. `name` has to outlive the operand. Raises InvalidArgument for an unsupported type, for
/// memory of another device than `on_gpu` says, and for elements in an unsupported layout.
[[nodiscard]] untax_operand matrix_of(const char* name, nb::handle given, bool on_gpu,
                                      read_array& keeper, const char* said = nullptr);
[[nodiscard]] untax_operand matrix_of(const char* name, nb::handle given, bool on_gpu,
                                      written_array& keeper, const char* said = nullptr);
[[nodiscard]] untax_operand array_of(const char* name, nb::handle given, bool on_gpu,
                                     read_array& keeper, const char* said = nullptr);
[[nodiscard]] untax_operand array_of(const char* name, nb::handle given, bool on_gpu,
                                     written_array& keeper, const char* said = nullptr);
/// As `matrix_of`, for an operand that may also have elements of int32 or of 8 bits: rows of a
/// matrix, or elements of other arrays in one row.
[[nodiscard]] untax_operand operand_of(const char* name, nb::handle given, bool on_gpu,
                                       read_array& keeper);
[[nodiscard]] untax_operand operand_of(const char* name, nb::handle given, bool on_gpu,
                                       written_array& keeper);
/// Rows of 32-bit numbers without gaps, or their address; without data for None.
[[nodiscard]] untax_operand numbers_of(const char* name, nb::handle given, std::int64_t rows,
                                       std::int64_t cols, bool on_gpu, read_array& keeper);
/// Elements of any type in one dimension without gaps in host memory. Raises InvalidArgument for
/// others.
void open_vector(const char* name, nb::handle given, read_array& keeper);
void open_vector(const char* name, nb::handle given, written_array& keeper);

}  // namespace untax::python
