#pragma once

#include <cstddef>
#include <cstdint>

namespace untax {

/// Arenas in the memory of devices, mapped into this process one behind the other, so that they are
/// addressed like those in host memory. The host cannot follow these addresses; what it has to do
/// with the bytes, it does through here.
///
/// Calls for different ranks may come from different threads at once. Nothing here touches the
/// default stream of a device, and everything is done when a call returns. Errors of CUDA are
/// `internal`, and name the rank and the device.
class device_arenas {
 public:
  device_arenas() = default;
  device_arenas(const device_arenas&) = delete;
  device_arenas& operator=(const device_arenas&) = delete;
  virtual ~device_arenas() = default;

  /// Where the arena of rank 0 starts.
  [[nodiscard]] virtual std::byte* base() const noexcept = 0;
  /// The number of the device of `rank`, as this process counts; -1 for a rank of another process.
  [[nodiscard]] virtual int device_of(int rank) const noexcept = 0;
  /// Makes the device of `rank` the current one of the calling thread.
  virtual void use(int rank) const = 0;

  /// Waits for everything that runs on the device of `rank`; how it ended is not said.
  virtual void finish(int rank) const noexcept = 0;

  /// Sets `bytes` bytes, in an arena of a rank of this process.
  virtual void fill(int rank, std::byte* at, std::byte value, std::size_t bytes) const = 0;
  /// Copies to host memory.
  virtual void read(int rank, std::byte* to, const std::byte* from, std::size_t bytes) const = 0;
  /// Copies a word of the control region into an arena, also while kernels fill the device. False
  /// if that is impossible.
  virtual bool send_word(int rank, std::uint64_t* to, const std::uint64_t* from) const noexcept = 0;

  /// The address at which the device of `rank` reaches `host`, which lies in the control region.
  [[nodiscard]] virtual void* address_on_device(int rank, const void* host) const = 0;
  /// Nanoseconds of the host's monotonic clock less those of the device's global timer.
  [[nodiscard]] virtual std::int64_t clock_offset(int rank) const noexcept = 0;
};

}  // namespace untax
