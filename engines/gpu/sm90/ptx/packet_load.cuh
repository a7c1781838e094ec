#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

namespace untax::gpu {

/// Loads a packet, relaxed, if `asks` is true. Otherwise reads nothing and returns `otherwise`, a
/// packet that has already arrived. For several loads in a row: after a load that is conditional in
/// C++, compilers copy its result, and that copy waits for the load before the next one is issued.
[[nodiscard]] __device__ inline packet load_packet_if(bool asks, const packet* from,
                                                      const packet& otherwise = {
                                                          0, ~std::uint64_t{0}}) noexcept {
  packet value;
  asm volatile(
      "{\n\t.reg .b128 whole;\n\t.reg .pred asks;\n\tsetp.ne.u32 asks, %3, 0;\n\t"
      "mov.b128 whole, {%4, %5};\n\t"
      "@asks ld.relaxed.sys.global.b128 whole, [%2];\n\tmov.b128 {%0, %1}, whole;\n\t}"
      : "=l"(value.data), "=l"(value.epoch)
      : "l"(__cvta_generic_to_global(from)), "r"(asks ? 1U : 0U), "l"(otherwise.data),
        "l"(otherwise.epoch)
      : "memory");
  return value;
}

}  // namespace untax::gpu
