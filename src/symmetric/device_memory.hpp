#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/symmetric/segment.hpp>

namespace untax {

// The functions of devices that worlds use. `cuda/` implements them. `no_cuda/` replaces it in
// builds without CUDA, and throws `unsupported`.

/// Identifies a device of a machine, even if processes number devices differently.
using device_id = std::array<std::uint8_t, 16>;

/// The number of usable devices. Throws `unsupported` with the reason if there is none.
[[nodiscard]] int visible_devices();
/// "NVIDIA H200 (sm_90)".
[[nodiscard]] std::string device_name(int device);
/// The page size of memory on `device` that other processes can map. Throws `unsupported` if the
/// device has no such memory.
[[nodiscard]] std::size_t device_page(int device);
/// Arenas of `first_bytes` that grow to `most_bytes`.
[[nodiscard]] segment_layout device_layout(int ranks, std::size_t control_bytes,
                                           std::size_t first_bytes, std::size_t most_bytes,
                                           int device);
/// Makes `device` the current device of the calling thread.
void use_device(int device);
/// Makes each rank of this process use few streams from now on, since ranks share devices.
void share_device_streams() noexcept;

/// Memory of one rank, before it is part of a world's arenas.
class device_share {
 public:
  device_share() = default;
  device_share(const device_share&) = delete;
  device_share& operator=(const device_share&) = delete;
  virtual ~device_share() = default;

  /// Allocates memory for `rank`; if it is `shared`, other processes can map it. Throws
  /// `out_of_memory`.
  [[nodiscard]] static std::unique_ptr<device_share> make(int rank, int device, std::size_t bytes,
                                                          bool shared);

  /// The descriptor by which other processes map the memory; -1 if they cannot. This object owns
  /// it.
  [[nodiscard]] virtual int descriptor() const noexcept = 0;
  [[nodiscard]] virtual device_id id() const noexcept = 0;
};

/// The cleared arenas of a world whose ranks are all in this process, rank r on device
/// `devices[r]`. Registers the control region of `memory`, which has to outlive the arenas. Throws
/// `out_of_memory`, and `unsupported` if there are not enough devices or if one cannot reach
/// another.
[[nodiscard]] std::unique_ptr<device_arenas> arenas_of_this_process(
    const segment& memory, const std::vector<int>& devices);

/// The memory that the other ranks of a world share with this one.
struct device_shares {
  std::vector<int> descriptors;  ///< by rank; the caller owns them
  std::vector<device_id> ids;    ///< by rank
};

/// As above, for a world of processes. Only the arena of `rank` is cleared.
[[nodiscard]] std::unique_ptr<device_arenas> arenas_of_processes(const segment& memory, int rank,
                                                                 int device,
                                                                 std::unique_ptr<device_share> mine,
                                                                 const device_shares& shares);

}  // namespace untax
