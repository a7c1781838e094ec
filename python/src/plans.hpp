#pragma once

#include <nanobind/nanobind.h>

#include <span>

#include <untax/untax.h>

namespace untax::python {

namespace nb = nanobind;

/// How an operator is planned from names and numbers, and which run it has.
struct plan_entry {
  const char* name;
  untax_operator* (*plan)(untax_world*, const nb::dict& problem, const nb::dict& options);
  int32_t (*gemm)(untax_operator*, const untax_const_matrix*, const untax_const_matrix*,
                  const untax_matrix*, void*);
  int32_t (*collective)(untax_operator*, const untax_const_array*, const untax_array*, void*);
  int32_t (*result)(const untax_operator*, untax_matrix*);  ///< where it has a C of its own
};

[[nodiscard]] std::span<const plan_entry> plan_entries() noexcept;

}  // namespace untax::python
