#pragma once

#include <cstddef>
#include <cstdint>

namespace untax {

class device_share;

/// Arenas in the memory of devices, mapped into this process one behind the other, so that they are
/// addressed like arenas in host memory. The host cannot access these addresses itself; it accesses
/// the bytes through this class.
///
/// Calls for different ranks may come from different threads at once. No call uses the default
/// stream of a device. Every call but `send_word` returns when its work is complete. Errors of CUDA
/// are `internal`, and name the rank and the device.
class device_arenas {
 public:
  device_arenas() = default;
  device_arenas(const device_arenas&) = delete;
  device_arenas& operator=(const device_arenas&) = delete;
  virtual ~device_arenas() = default;

  /// The address at which the range of rank 0's arena starts.
  [[nodiscard]] virtual std::byte* base() const noexcept = 0;
  /// The device number of `rank` in this process; -1 for a rank of another process.
  [[nodiscard]] virtual int device_of(int rank) const noexcept = 0;
  /// Makes the device of `rank` the current one of the calling thread.
  virtual void use(int rank) const = 0;

  /// Maps `bytes` bytes more, cleared, at `offset` of the range of a rank of this process. It does
  /// nothing if whole ranges have memory from the beginning, as in tests.
  virtual void extend(int /*rank*/, std::size_t /*offset*/, std::size_t /*bytes*/,
                      const device_share& /*memory*/) {}
  /// As above, for the memory of another process's rank, which that process clears. The caller owns
  /// the descriptor.
  virtual void extend(int /*rank*/, std::size_t /*offset*/, std::size_t /*bytes*/,
                      int /*descriptor*/) {}

  /// Waits for everything that runs on the device of `rank`. An error of that work is dropped.
  virtual void finish(int rank) const noexcept = 0;

  /// Sets `bytes` bytes at `at` to `value`, in an arena of a rank of this process. Blocks.
  virtual void fill(int rank, std::byte* at, std::byte value, std::size_t bytes) const = 0;
  /// Copies `bytes` bytes from an arena to host memory. `rank` is a rank of this process. Blocks.
  virtual void read(int rank, std::byte* to, const std::byte* from, std::size_t bytes) const = 0;
  /// Starts a copy of one word of the control region into an arena. It also succeeds while kernels
  /// fill the device. It does not wait for the copy, so `*from` has to keep its value. False if the
  /// copy cannot be started.
  virtual bool send_word(int rank, std::uint64_t* to, const std::uint64_t* from) const noexcept = 0;

  /// The address at which the device of `rank` reaches `host`, an address in the control region.
  [[nodiscard]] virtual void* address_on_device(int rank, const void* host) const = 0;
  /// The host's monotonic clock minus the device's global timer, in nanoseconds.
  [[nodiscard]] virtual std::int64_t clock_offset(int rank) const noexcept = 0;
};

}  // namespace untax
