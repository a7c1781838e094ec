#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include <untax/untax.h>

namespace untax::python {

namespace nb = nanobind;

/// Plans an operator. `settings` has fields of its problem and of its options by their names:
/// numbers, words, lists of numbers; None leaves a field as it is. Raises InvalidArgument for other
/// values.
[[nodiscard]] untax_operator* plan_operator(untax_world* w, const std::string& name,
                                            const nb::dict& settings);

/// The fields of an operator: (name, help, words, kind, whether it is an option).
[[nodiscard]] nb::list fields_of(const std::string& name);

/// The operands of a problem for a rank: (name, rows, columns, type, whether a run writes it,
/// whether it may be missing).
[[nodiscard]] nb::list shapes_of(const std::string& name, const nb::dict& settings,
                                 std::int32_t ranks, std::int32_t rank);

}  // namespace untax::python
