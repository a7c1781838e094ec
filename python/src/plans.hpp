#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include <untax/untax.h>

namespace untax::python {

namespace nb = nanobind;

/// The runs of an operator that known calls make without naming their operands.
struct run_entry {
  const char* name;
  int32_t (*gemm)(untax_operator*, const untax_const_matrix*, const untax_const_matrix*,
                  const untax_matrix*, void*);
  int32_t (*collective)(untax_operator*, const untax_const_array*, const untax_array*, void*);
  int32_t (*result)(const untax_operator*, untax_matrix*);  ///< if it has a C of its own
};

/// The runs of an operator; those that it does not have are null.
[[nodiscard]] const run_entry& runs_of(const std::string& name) noexcept;

/// Plans an operator. `settings` has fields of its problem and of its options by their names:
/// numbers, words, lists of numbers; None leaves a field as it is. Raises InvalidArgument for
/// others.
[[nodiscard]] untax_operator* plan_operator(untax_world* w, const std::string& name,
                                            const nb::dict& settings);

/// The fields of an operator: (name, help, words, kind, whether it is an option).
[[nodiscard]] nb::list fields_of(const std::string& name);

/// The operands of a problem for a rank: (name, rows, columns, type, whether a run writes it,
/// whether it may be missing).
[[nodiscard]] nb::list shapes_of(const std::string& name, const nb::dict& settings,
                                 std::int32_t ranks, std::int32_t rank);

}  // namespace untax::python
