#pragma once

#include <cstdint>

namespace untax::gpu {

/// The shared memory descriptor of an operand: rows of 64 elements of 2 bytes, as TMA writes them
/// with its swizzle of 128 bytes. Eight rows make 1024 bytes, and `rows` is at a multiple of that.
[[nodiscard]] __device__ inline std::uint64_t operand_descriptor(const void* rows) {
  constexpr std::uint64_t eight_rows = 1024;
  constexpr std::uint64_t swizzle_128 = 1;
  const auto at = static_cast<std::uint64_t>(__cvta_generic_to_shared(rows));
  // The leading dimension offset is not used with this swizzle; 1 is customary.
  return (at & 0x3ffffU) >> 4U | std::uint64_t{1} << 16U | (eight_rows >> 4U) << 32U |
         swizzle_128 << 62U;
}

/// The descriptor of an operand whose rows lie along the depth of the product, such as V in
/// attention: its columns are in parts of 64, each part `part_bytes` after the one before.
[[nodiscard]] __device__ inline std::uint64_t deep_rows_descriptor(const void* rows,
                                                                   std::uint32_t part_bytes) {
  constexpr std::uint64_t eight_rows = 1024;
  constexpr std::uint64_t swizzle_128 = 1;
  const auto at = static_cast<std::uint64_t>(__cvta_generic_to_shared(rows));
  return (at & 0x3ffffU) >> 4U | std::uint64_t{part_bytes >> 4U} << 16U |
         (eight_rows >> 4U) << 32U | swizzle_128 << 62U;
}

/// The descriptor advanced by some elements: within the 64 of a row, or by a multiple of 8 rows.
[[nodiscard]] __device__ inline std::uint64_t advanced(std::uint64_t descriptor, int elements) {
  return descriptor + static_cast<std::uint64_t>(elements * 2 / 16);
}

}  // namespace untax::gpu
