#pragma once

#include <cstdint>

#include "engines/gpu/gemm/cta_reads.hpp"

// Addresses at which nothing is, and what each CTA of a GEMM reads and multiplies.
namespace plans_test {

/// An address at which nothing is.
[[nodiscard]] inline void* operand_at(std::int64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}
[[nodiscard]] inline std::int64_t address(const void* data) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
}

using untax::gpu::each_read;
using untax::gpu::row_span;
using read_tile = untax::gpu::cta_read;

}  // namespace plans_test
