#pragma once

#include <cstdint>

/// Makes a template of (Value, Offset) for every pair of types that matrices have.
#define UNTAX_SPARSE_TYPES(MAKE) \
  MAKE(float, std::int32_t)      \
  MAKE(float, std::int64_t)      \
  MAKE(double, std::int32_t)     \
  MAKE(double, std::int64_t)
