#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <untax/core/types.hpp>

#include "ops/common/field.hpp"

namespace untax {

/// Elements of operands, by their numbers in the C ABI: those that operators compute with, and
/// those of arrays of lengths and of quantised results.
enum class element : std::int32_t { f32 = 0, f16 = 1, bf16 = 2, i32 = 16, e4m3 = 17 };

/// The name of `e` in messages.
[[nodiscard]] constexpr std::string_view name_of(element e) noexcept {
  if (e == element::i32) return "int32";
  return e == element::e4m3 ? "e4m3" : name_of(static_cast<dtype>(e));
}

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(element e) noexcept {
  if (e == element::i32) return sizeof(std::int32_t);
  return e == element::e4m3 ? 1 : size_of(static_cast<dtype>(e));
}

/// The use that a run makes of an operand. Optional ones may be missing.
enum class operand_use : std::uint8_t { read, written, optional_read, optional_written };

/// An operand of a run as one rank passes it. Arrays have one row; for operators whose runs differ,
/// rows or elements are those of the capacity.
struct operand_shape {
  constexpr operand_shape(std::string_view operand_name, std::int64_t row_count,
                          std::int64_t col_count, element elements,
                          operand_use operand_is = operand_use::read)
      : name(operand_name), rows(row_count), cols(col_count), type(elements), use(operand_is) {}
  constexpr operand_shape(std::string_view operand_name, std::int64_t row_count,
                          std::int64_t col_count, dtype elements,
                          operand_use operand_is = operand_use::read)
      : operand_shape(operand_name, row_count, col_count, static_cast<element>(elements),
                      operand_is) {}

  [[nodiscard]] constexpr bool is_optional() const {
    return use == operand_use::optional_read || use == operand_use::optional_written;
  }
  [[nodiscard]] constexpr bool is_written() const {
    return use == operand_use::written || use == operand_use::optional_written;
  }

  std::string_view name;
  std::int64_t rows;
  std::int64_t cols;
  element type;
  operand_use use;
};

/// Describes an operator to the C ABI, Python, the command and the tests. A specialisation in
/// ops/<operator>/spec.hpp has
///
///   name, summary       as the command and messages have them
///   problem, options    the structures that the operator's constructor takes
///   problem_fields      their fields, in the order of the members of untax_<name>_problem in the
///   option_fields       C ABI, and of its options
///   without             names of options that it shares with other operators and does not have
///   sends               false if each rank works for itself: planning is not collective
///   operands(p, world, rank), run(op, values, stream)
///                       the operands of a run, with shapes in terms of fields, and a run on them
///   example             the problem that the command runs unless it is told another
///   uneven              only if the command can run it with parts of different sizes
///   has_gpu_kernel(p, o)
///                       only if GPUs lack a kernel for some problems
///   check_on_gpus(p, ranks, o, multiprocessors), checked_on_gpus
///                       only if plans for GPUs can be checked: the check, and an example of the
///                       arguments with which `untax check` does it
///
/// A GEMM operator or a collective has an `entry`, which makes its operator_entry or
/// collective_entry. Another operator has
///
///   variants()          its protocols, with the problems on which they are checked, if it sends
///   subject(p, o, memory, uneven)
///                       a trial of it, if `untax run` runs it
template <class Operator>
struct spec_of;

/// The part of a spec that needs no type.
struct operator_spec {
  std::string_view name;
  std::string_view summary;
  std::span<const field> problem_fields;
  std::span<const field> option_fields;
  std::span<const std::string_view> without;
};

template <class Operator>
inline constexpr operator_spec spec = {.name = spec_of<Operator>::name,
                                       .summary = spec_of<Operator>::summary,
                                       .problem_fields = spec_of<Operator>::problem_fields,
                                       .option_fields = spec_of<Operator>::option_fields,
                                       .without = spec_of<Operator>::without};

}  // namespace untax
