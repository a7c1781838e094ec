#pragma once

#include <cstdint>

namespace untax::gpu {

/// How the tensor cores are told of an operand in shared memory: rows of 64 elements of 2 bytes, as
/// TMA leaves them with its swizzle of 128 bytes. Eight rows make 1024 bytes, and
/// `rows` is at a multiple of that.
[[nodiscard]] __device__ inline std::uint64_t operand_descriptor(const void* rows) {
  constexpr std::uint64_t eight_rows = 1024;
  constexpr std::uint64_t swizzle_128 = 1;
  const auto at = static_cast<std::uint64_t>(__cvta_generic_to_shared(rows));
  // The distance along a row is not used with this swizzle; 1 is what is customary.
  return (at & 0x3ffffU) >> 4U | std::uint64_t{1} << 16U | (eight_rows >> 4U) << 32U |
         swizzle_128 << 62U;
}

/// The same of an operand whose rows lie along the depth of the product, such as values of keys:
/// its columns in parts of 64, one part `part_bytes` behind the other.
[[nodiscard]] __device__ inline std::uint64_t deep_rows_descriptor(const void* rows,
                                                                   std::uint32_t part_bytes) {
  constexpr std::uint64_t eight_rows = 1024;
  constexpr std::uint64_t swizzle_128 = 1;
  const auto at = static_cast<std::uint64_t>(__cvta_generic_to_shared(rows));
  return (at & 0x3ffffU) >> 4U | std::uint64_t{part_bytes >> 4U} << 16U |
         (eight_rows >> 4U) << 32U | swizzle_128 << 62U;
}

/// The operand so many elements further on: within the 64 of a row, and any multiple of 8 rows.
[[nodiscard]] __device__ inline std::uint64_t advanced(std::uint64_t descriptor, int elements) {
  return descriptor + static_cast<std::uint64_t>(elements * 2 / 16);
}

}  // namespace untax::gpu
