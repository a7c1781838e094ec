#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/symmetric/segment.hpp>

namespace untax {

// What worlds need of devices. `cuda/` does it; `no_cuda/` stands in where CUDA is not compiled in,
// and refuses with `unsupported`.

/// Tells the devices of a machine apart, also where processes number them differently.
using device_id = std::array<std::uint8_t, 16>;

/// How many devices this process can use. Throws `unsupported`, which says why there is none.
[[nodiscard]] int visible_devices();
/// "NVIDIA H200 (sm_90)".
[[nodiscard]] std::string device_name(int device);
/// The page size of memory on `device` that others can map. Throws `unsupported` if there is no
/// such memory.
[[nodiscard]] std::size_t device_page(int device);
[[nodiscard]] segment_layout device_layout(int ranks, std::size_t control_bytes,
                                           std::size_t arena_bytes, int device);
/// Makes `device` the current one of the calling thread.
void use_device(int device);
/// From now on ranks of this process share devices, and so their streams have to be few.
void share_device_streams() noexcept;

/// The memory of one rank, before it is part of a world.
class device_share {
 public:
  device_share() = default;
  device_share(const device_share&) = delete;
  device_share& operator=(const device_share&) = delete;
  virtual ~device_share() = default;

  /// `bytes` bytes for `rank` on `device`, which other processes can map. Throws `out_of_memory`.
  [[nodiscard]] static std::unique_ptr<device_share> make(int rank, int device, std::size_t bytes);

  /// Stands for the memory in other processes. It stays ours.
  [[nodiscard]] virtual int descriptor() const noexcept = 0;
  [[nodiscard]] virtual device_id id() const noexcept = 0;
};

/// The arenas of a world whose ranks all live in this process, rank r on device `devices[r]`,
/// cleared.
/// Registers the control region of `memory`, which has to outlive the arenas. Throws `unsupported`
/// if there are not enough devices or one cannot reach another, `out_of_memory`.
[[nodiscard]] std::unique_ptr<device_arenas> arenas_of_this_process(
    const segment& memory, const std::vector<int>& devices);

/// What the other ranks of a world gave to this one.
struct device_shares {
  std::vector<int> descriptors;  ///< by rank; they stay the caller's
  std::vector<device_id> ids;    ///< by rank
};

/// The arenas of a world of processes: its own one is cleared. Otherwise as above.
[[nodiscard]] std::unique_ptr<device_arenas> arenas_of_processes(const segment& memory, int rank,
                                                                 int device,
                                                                 std::unique_ptr<device_share> mine,
                                                                 const device_shares& all);

}  // namespace untax
