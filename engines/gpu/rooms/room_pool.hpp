#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include <untax/world/world.hpp>

namespace untax::gpu {

/// The rooms that the plans of one operator share: see `shared_room.hpp`.
class room_pool;

/// Plans with more bytes than this share a room. Smaller plans have memory of their own, since a
/// hand-over takes some microseconds: all of them together have at most 12.5 times as much.
inline constexpr std::size_t most_own_room = std::size_t{4} << 20;
/// The size of a shared room that is made for `bytes` bytes. A plan for fewer rows, with tiles of
/// another shape, may need a little more.
[[nodiscard]] constexpr std::size_t shared_room_bytes(std::size_t bytes) noexcept {
  constexpr std::size_t most_slack = std::size_t{32} << 20;
  const std::size_t slack = bytes / 8 < most_slack ? bytes / 8 : most_slack;
  return (bytes + slack + 511) / 512 * 512;
}

/// A pool for the plans of an operator on `w`, which has to outlive it. Null in a build without
/// CUDA.
[[nodiscard]] std::shared_ptr<room_pool> make_room_pool(world& w, std::string_view name);

}  // namespace untax::gpu
