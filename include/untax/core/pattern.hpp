#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <untax/core/host_device.hpp>

namespace untax {

/// Ways to overlap communication with computation, from none to all of it.
enum class pattern : std::uint8_t {
  automatic,     ///< untax chooses; `explain()` names the choice and its reason
  bulk_library,  ///< one library GEMM and a plain collective, a barrier between them: the baseline
  bulk_synchronous,        ///< own tiles, barrier, own collective
  producer_consumer,       ///< two kernels at the same time, tile flags between them
  copy_engine,             ///< own tiles; DMA engines move the data, ordered by streams. GPUs only
  fused_sequential,        ///< one kernel; the worker that computes a tile also moves it
  fused_specialized,       ///< one kernel; some workers move data, the others compute
  fused_warp_specialized,  ///< one kernel; warps of a CTA load, multiply and move data. GPUs only
};

/// All patterns, in the order of their values.
inline constexpr std::array<pattern, 8> all_patterns = {
    pattern::automatic,         pattern::bulk_library,          pattern::bulk_synchronous,
    pattern::producer_consumer, pattern::copy_engine,           pattern::fused_sequential,
    pattern::fused_specialized, pattern::fused_warp_specialized};

/// The patterns that ranks on the host have: threads have no DMA engines, and no warps.
inline constexpr std::array<pattern, 6> host_patterns = {
    pattern::automatic,         pattern::bulk_library,     pattern::bulk_synchronous,
    pattern::producer_consumer, pattern::fused_sequential, pattern::fused_specialized};

/// The name of `p` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(pattern p) noexcept {
  constexpr std::string_view names[] = {
      "automatic",   "bulk_library",     "bulk_synchronous",  "producer_consumer",
      "copy_engine", "fused_sequential", "fused_specialized", "fused_warp_specialized"};
  return names[static_cast<std::uint8_t>(p)];
}

/// Whether computation and communication are separate stages with a barrier between them.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool is_bulk(pattern p) noexcept {
  return p == pattern::bulk_library || p == pattern::bulk_synchronous;
}

/// Whether ranks on the host have the pattern `p`.
[[nodiscard]] constexpr bool on_host(pattern p) noexcept {
  return p != pattern::copy_engine && p != pattern::fused_warp_specialized;
}

/// The side that moves the bytes of a gather: their owner (push) or their reader (pull).
enum class direction : std::uint8_t { push, pull };

/// The name of `d` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(direction d) noexcept {
  return d == direction::push ? "push" : "pull";
}

/// How the stages of a run are started. `eager` starts new threads for every kernel. `graph` hands
/// all kernels of a run to threads that already wait, as a captured CUDA graph does.
enum class launch_mode : std::uint8_t { eager, graph };

}  // namespace untax
