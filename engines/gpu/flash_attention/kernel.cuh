#pragma once

#include "engines/gpu/flash_attention/mma_consumer.cuh"
#include "engines/gpu/flash_attention/tma_producer.cuh"
#include "engines/gpu/flash_attention/variants/variants.hpp"
#include "engines/gpu/sm90/ptx/registers.cuh"

// One block runs on each multiprocessor. Its roles run concurrently:
//
//   order --> producer --[queries; ring of keys and values]--> 2 or 3 warpgroups --> result rows
//             1 thread                                         64 rows each

namespace untax::gpu {

/// Registers per thread after the roles have redistributed them (setmaxnreg).
struct flash_registers {
  int producer;
  int consumer;
};
[[nodiscard]] UNTAX_HOST_DEVICE constexpr flash_registers registers_of(const flash_config& config) {
  return config.groups == 3 ? flash_registers{32, 160} : flash_registers{40, 232};
}
/// Whether a block starts with that many registers, which are allocated in multiples of 8 per
/// thread. Otherwise a warpgroup that requests more than are free would wait for ever.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool has_registers(const flash_config& config) {
  const int at_start = 65536 / config.threads() / 8 * 8 * config.threads();
  const flash_registers shared_out = registers_of(config);
  return 128 * (shared_out.producer + config.groups * shared_out.consumer) <= at_start;
}

template <class Element, int width, bool causal>
__global__ void __launch_bounds__(flash_config::of(width, causal).threads(), 1)
    flash_attend(const __grid_constant__ flash_arguments arguments) {
  constexpr flash_config config = flash_config::of(width, causal);
  constexpr flash_registers registers = registers_of(config);
  static_assert(has_registers(config));
  extern __shared__ std::byte given[];
  const std::uint32_t start = shared_address(given);
  auto& shared =
      *reinterpret_cast<flash_memory<config>*>(given + ((start + 1023) / 1024 * 1024 - start));
  if (threadIdx.x == 0) {
    prefetch(arguments.queries);
    prefetch(arguments.keys);
    prefetch(arguments.values);
    shared.init();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / 128;
  if (group == 0) {
    shrink_registers<registers.producer>();
    if (threadIdx.x == 0) flash_producer<config>(arguments, shared).run();
  } else {
    grow_registers<registers.consumer>();
    flash_consumer<Element, config, causal>(arguments, shared, group - 1).run();
  }
}

template <int width>
[[nodiscard]] flash_kernel flash_kernel_of_width(dtype type, bool causal) {
  const auto of = [&]<class Element>(Element /*zero*/) {
    return causal ? reinterpret_cast<const void*>(&flash_attend<Element, width, true>)
                  : reinterpret_cast<const void*>(&flash_attend<Element, width, false>);
  };
  constexpr std::size_t with = sizeof(flash_memory<flash_config::of(width, true)>) + 1024;
  constexpr std::size_t without = sizeof(flash_memory<flash_config::of(width, false)>) + 1024;
  static_assert(with <= 227 << 10 && without <= 227 << 10);
  return {type == dtype::bf16 ? of(bf16{}) : of(f16{}), causal ? with : without};
}

}  // namespace untax::gpu
