#include "views.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>

#include "exchange.hpp"
#include "raise.hpp"

namespace untax::python {
namespace {

struct layout {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;
  std::int32_t type = 0;
};

untax_operand as_operand(const char* name, const layout& l) {
  return {name, l.data, l.rows, l.cols, l.stride, l.type};
}

std::string described(nb::handle given) {
  return nb::cast<std::string>(nb::str(given.type().attr("__name__")));
}

template <class Array>
void take(const char* name, nb::handle given, Array& keeper) {
  try {
    keeper = nb::cast<Array>(given);
  } catch (const nb::cast_error&) {
    refuse(std::string(name) + " is a " + described(given) +
           "; it has to be an array with __dlpack__ or a buffer" +
           (std::is_same_v<Array, written_array> ? " that may be written" : ""));
  }
}

/// A tensor that is read in place, with the interface of nanobind's arrays.
struct seen_tensor {
  nb::dlpack::dltensor tensor;

  [[nodiscard]] std::size_t ndim() const { return static_cast<std::size_t>(tensor.ndim); }
  [[nodiscard]] std::int64_t shape(std::size_t d) const { return tensor.shape[d]; }
  [[nodiscard]] std::int64_t stride(std::size_t d) const { return tensor.strides[d]; }
  [[nodiscard]] nb::dlpack::dtype dtype() const { return tensor.dtype; }
  [[nodiscard]] int device_type() const { return tensor.device.device_type; }
  [[nodiscard]] void* data() const {
    return static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  }
  [[nodiscard]] std::size_t size() const {
    std::int64_t count = 1;
    for (std::size_t d = 0; d < ndim(); ++d) count *= shape(d);
    return static_cast<std::size_t>(count);
  }
};

template <class Array>
bool lies_on_gpu(const Array& a) {
  return a.device_type() == nb::device::cuda::value ||
         a.device_type() == nb::device::cuda_managed::value;
}

void require_place(const char* name, bool lies_there, bool on_gpu) {
  if (lies_there == on_gpu) return;
  refuse(std::string(name) + " lies " + (lies_there ? "on a GPU" : "in host memory") +
         ", and the heaps of this world lie " + (on_gpu ? "on GPUs" : "in host memory"));
}

/// Calls `look(array)` for `given`. `keeper` stays empty if the type of `given` offers a quicker
/// way: then the memory lives as long as the caller's object.
template <class Array, class Look>
auto open(const char* name, nb::handle given, bool on_gpu, Array& keeper, const Look& look) {
  constexpr auto read = std::is_same_v<Array, read_array> ? read_tensor : read_writable_tensor;
  if (seen_tensor seen; read(given, seen.tensor)) {
    require_place(name, lies_on_gpu(seen), on_gpu);
    return look(seen);
  }
  take(name, given, keeper);
  require_place(name, lies_on_gpu(keeper), on_gpu);
  return look(keeper);
}

/// "float64", "int32", "fp8": an element type of DLPack under numpy's name.
std::string name_of(nb::dlpack::dtype type) {
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  const auto name = [&](const char* kind) { return kind + std::to_string(type.bits); };
  switch (code) {
    case nb::dlpack::dtype_code::Int:
      return name("int");
    case nb::dlpack::dtype_code::UInt:
      return name("uint");
    case nb::dlpack::dtype_code::Float:
      return name("float");
    case nb::dlpack::dtype_code::Complex:
      return name("complex");
    case nb::dlpack::dtype_code::Bool:
      return "bool";
    default:
      return "a type of " + std::to_string(type.bits) + " bits";
  }
}

template <class Array>
std::int32_t type_of(const char* name, const Array& a) {
  const auto type = a.dtype();
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  if (type.lanes == 1 && code == nb::dlpack::dtype_code::Float && type.bits == 32) return untax_f32;
  if (type.lanes == 1 && code == nb::dlpack::dtype_code::Float && type.bits == 16) return untax_f16;
  if (type.lanes == 1 && code == nb::dlpack::dtype_code::Bfloat && type.bits == 16)
    return untax_bf16;
  refuse(std::string(name) + " has elements of " + name_of(type) +
         "; they have to be fp32, fp16 or bf16");
}

/// The type of an operand with a name.
template <class Array>
std::int32_t element_of(const char* name, const Array& a) {
  const auto type = a.dtype();
  if (type == nb::dtype<std::int32_t>()) return untax_i32;
  // Bytes, or torch's fp8, for which DLPack has no common code.
  if (type.bits == 8 && type.lanes == 1) return untax_e4m3;
  return type_of(name, a);
}

layout of_tuple(const char* name, nb::handle given) {
  try {
    const auto [data, rows, cols, stride, type] = nb::cast<
        std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::int64_t, std::int32_t>>(given);
    return {reinterpret_cast<void*>(data), rows, cols, stride, type};
  } catch (const nb::cast_error&) {
    refuse(std::string(name) +
           " is a tuple, which has to be (address, rows, columns, elements "
           "from row to row, type)");
  }
}

template <class Array>
void* address(const Array& a) {
  return const_cast<void*>(static_cast<const void*>(a.data()));
}

template <class Array>
layout rows_in(const char* name, const Array& a, std::int32_t type) {
  if (a.ndim() != 2) {
    refuse(std::string(name) + " has " + std::to_string(a.ndim()) +
           " dimensions; it has to be a matrix, with 2");
  }
  layout l{address(a), static_cast<std::int64_t>(a.shape(0)), static_cast<std::int64_t>(a.shape(1)),
           0, type};
  if (l.cols > 1 && l.rows > 0 && a.stride(1) != 1) {
    refuse("columns of " + std::string(name) + " lie " + std::to_string(a.stride(1)) +
           " elements apart; they have to lie side by side");
  }
  if (l.rows > 1) l.stride = a.stride(0);
  // The C ABI treats a stride of 0 as rows without gaps, which would reach into memory of others.
  if (l.rows > 1 && l.cols > 0 && l.stride == 0)
    refuse("all rows of " + std::string(name) + " lie at the same place; they have to lie apart");
  return l;
}

template <class Array>
layout rows_of(const char* name, nb::handle given, bool on_gpu, Array& keeper) {
  if (PyTuple_Check(given.ptr())) return of_tuple(name, given);
  return open(name, given, on_gpu, keeper,
              [&](const auto& a) { return rows_in(name, a, type_of(name, a)); });
}

template <class Array>
bool side_by_side(const Array& a) {
  std::int64_t expected = 1;
  for (std::size_t d = a.ndim(); d-- > 0;) {
    if (a.shape(d) > 1 && a.stride(d) != expected) return false;
    expected *= static_cast<std::int64_t>(a.shape(d));
  }
  return true;
}

/// All elements as one row.
template <class Array>
layout elements_in(const char* name, const Array& a, std::int32_t type) {
  if (a.size() > 0 && !side_by_side(a))
    refuse("elements of " + std::string(name) + " have to lie side by side, in their order");
  return {address(a), 1, static_cast<std::int64_t>(a.size()), 0, type};
}

template <class Array>
untax_operand named_operand(const char* name, nb::handle given, bool on_gpu, Array& keeper) {
  const layout l =
      PyTuple_Check(given.ptr())
          ? of_tuple(name, given)
          : open(name, given, on_gpu, keeper, [&](const auto& a) {
              const std::int32_t type = element_of(name, a);
              return a.ndim() == 2 ? rows_in(name, a, type) : elements_in(name, a, type);
            });
  return as_operand(name, l);
}

template <class Array>
layout elements_of(const char* name, nb::handle given, bool on_gpu, Array& keeper) {
  if (PyTuple_Check(given.ptr())) {
    layout l = of_tuple(name, given);
    l.cols *= l.rows;
    l.rows = 1;
    return l;
  }
  return open(name, given, on_gpu, keeper,
              [&](const auto& a) { return elements_in(name, a, type_of(name, a)); });
}

template <class Array>
void vector_of(const char* name, nb::handle given, Array& keeper) {
  take(name, given, keeper);
  if (lies_on_gpu(keeper))
    refuse(std::string(name) + " lies on a GPU; it has to lie in host memory");
  if (keeper.ndim() != 1) {
    refuse(std::string(name) + " has " + std::to_string(keeper.ndim()) +
           " dimensions; it has to have 1");
  }
  if (!side_by_side(keeper)) {
    refuse("elements of " + std::string(name) + " lie " + std::to_string(keeper.stride(0)) +
           " apart; they have to lie side by side");
  }
}

}  // namespace

untax_operand matrix_of(const char* name, nb::handle given, bool on_gpu, read_array& keeper,
                        const char* said) {
  return as_operand(name, rows_of(said != nullptr ? said : name, given, on_gpu, keeper));
}

untax_operand matrix_of(const char* name, nb::handle given, bool on_gpu, written_array& keeper,
                        const char* said) {
  return as_operand(name, rows_of(said != nullptr ? said : name, given, on_gpu, keeper));
}

untax_operand array_of(const char* name, nb::handle given, bool on_gpu, read_array& keeper,
                       const char* said) {
  return as_operand(name, elements_of(said != nullptr ? said : name, given, on_gpu, keeper));
}

untax_operand array_of(const char* name, nb::handle given, bool on_gpu, written_array& keeper,
                       const char* said) {
  return as_operand(name, elements_of(said != nullptr ? said : name, given, on_gpu, keeper));
}

untax_operand operand_of(const char* name, nb::handle given, bool on_gpu, read_array& keeper) {
  return named_operand(name, given, on_gpu, keeper);
}

untax_operand operand_of(const char* name, nb::handle given, bool on_gpu, written_array& keeper) {
  return named_operand(name, given, on_gpu, keeper);
}

untax_operand numbers_of(const char* name, nb::handle given, std::int64_t rows, std::int64_t cols,
                         bool on_gpu, read_array& keeper) {
  untax_operand numbers{name, nullptr, rows, cols, 0, untax_i32};
  if (given.is_none()) {
    numbers.cols =
        std::max<std::int64_t>(cols, 1);  // otherwise the dimension would have no elements
    return numbers;
  }
  if (PyLong_Check(given.ptr())) {
    numbers.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(given));
    return numbers;
  }
  return open(name, given, on_gpu, keeper, [&](const auto& a) {
    const std::int64_t count = rows * cols;
    const std::string wanted =
        "; it has to hold " + std::to_string(count) + " of int32, side by side";
    if (a.dtype() != nb::dtype<std::int32_t>())
      refuse(std::string(name) + " has elements of " + name_of(a.dtype()) + wanted);
    if (static_cast<std::int64_t>(a.size()) != count)
      refuse(std::string(name) + " has " + std::to_string(a.size()) + " elements" + wanted);
    if (!side_by_side(a)) refuse(std::string(name) + " has elements that lie apart" + wanted);
    numbers.data = address(a);
    return numbers;
  });
}

void open_vector(const char* name, nb::handle given, read_array& keeper) {
  vector_of(name, given, keeper);
}
void open_vector(const char* name, nb::handle given, written_array& keeper) {
  vector_of(name, given, keeper);
}

}  // namespace untax::python
