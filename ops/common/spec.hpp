#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <untax/core/types.hpp>

#include "ops/common/field.hpp"

namespace untax {

/// An operand of a run as one rank passes it. Arrays have one row; for operators whose runs differ,
/// rows or elements are those of the capacity.
struct operand_shape {
  std::string_view name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  dtype type = dtype::f32;
  bool written = false;
};

/// Describes an operator to the C ABI, Python, the command and the tests: a specialisation in
/// ops/<operator>/spec.hpp has
///
///   name, summary            as the command and messages have them
///   problem, options         the structures that the operator's constructor takes
///   problem_fields           their fields: the members of untax_<name>_problem of the C ABI, in
///   option_fields            their order there, and those of its options
///   example                  a problem that the command runs unless it is told another
///   without                  fields of options that it shares with others and does not have
///   operands(p, world, rank) the operands of a run that are matrices or arrays of elements
///   sends                    false if ranks work each for itself, so that planning is not
///   collective
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
