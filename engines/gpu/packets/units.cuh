#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>

namespace untax::gpu {

/// Units of 16 bytes, in which reductions send their messages.
template <class Bits>
inline constexpr std::int64_t elements_of_unit = 16 / sizeof(Bits);

/// The number of units of a message of `count` elements.
template <class Bits>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t units_for(std::int64_t count) noexcept {
  return (count + elements_of_unit<Bits> - 1) / elements_of_unit<Bits>;
}

/// Whether unit `i` of a message can be read or written as one vector.
template <class Bits>
[[nodiscard]] __device__ bool is_whole_unit(const Bits* message, std::int64_t i,
                                            std::int64_t count) {
  return reinterpret_cast<std::uintptr_t>(message) % 16 == 0 &&
         (i + 1) * elements_of_unit<Bits> <= count;
}

template <class Bits>
union unit_bits {
  uint4 whole;
  Bits elements[elements_of_unit<Bits>];
};

// Units that are no whole vectors: one element at a time, not inlined, since they are rare and
// their registers would add to those of the caller.

template <class Bits>
[[nodiscard]] __device__ __noinline__ uint4 load_elements(const Bits* from, std::int64_t i,
                                                          std::int64_t count) {
  unit_bits<Bits> unit{make_uint4(0, 0, 0, 0)};
  const std::int64_t first = i * elements_of_unit<Bits>;
#pragma unroll
  for (int k = 0; k < elements_of_unit<Bits>; ++k) {
    if (first + k < count) unit.elements[k] = from[first + k];
  }
  return unit.whole;
}
template <class Bits>
__device__ __noinline__ void store_elements(uint4 data, Bits* to, std::int64_t i,
                                            std::int64_t count) {
  const unit_bits<Bits> unit{data};
  const std::int64_t first = i * elements_of_unit<Bits>;
#pragma unroll
  for (int k = 0; k < elements_of_unit<Bits>; ++k) {
    if (first + k < count) to[first + k] = unit.elements[k];
  }
}

/// Unit `i` of a message of `count` elements, with zeros after its end.
template <class Bits>
[[nodiscard]] __device__ uint4 load_unit(const Bits* from, std::int64_t i, std::int64_t count) {
  if (is_whole_unit(from, i, count)) return reinterpret_cast<const uint4*>(from)[i];
  return load_elements(from, i, count);
}
template <class Bits>
__device__ void store_unit(const uint4& data, Bits* to, std::int64_t i, std::int64_t count) {
  if (is_whole_unit(to, i, count)) {
    reinterpret_cast<uint4*>(to)[i] = data;
  } else {
    store_elements(data, to, i, count);
  }
}

}  // namespace untax::gpu
