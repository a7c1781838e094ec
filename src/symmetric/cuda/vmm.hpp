#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "driver.hpp"

namespace untax::gpu {

/// The properties of memory on `device`: pinned, and with a POSIX descriptor if `shared`.
[[nodiscard]] CUmemAllocationProp properties(int device, bool shared);

/// Owns memory on a device, or a share of another process's memory. It is not mapped by itself.
class allocation {
 public:
  allocation() = default;
  /// Throws `out_of_memory` with the free memory of the device.
  [[nodiscard]] static allocation make(int rank, int device, std::size_t bytes, bool shared);
  /// Imports a descriptor that another process exported. The caller keeps the descriptor.
  [[nodiscard]] static allocation import(int rank, int descriptor);

  allocation(allocation&& other) noexcept;
  allocation& operator=(allocation&& other) noexcept;
  ~allocation();

  [[nodiscard]] CUmemGenericAllocationHandle handle() const noexcept { return handle_; }

 private:
  explicit allocation(CUmemGenericAllocationHandle handle) noexcept : handle_(handle) {}

  CUmemGenericAllocationHandle handle_ = 0;
};

/// A range of addresses, the same for the host and all devices of this process. It has `parts` of
/// equal size, side by side, and allocations are mapped into them. Threads may map different parts
/// at once.
class address_range {
 public:
  address_range(int parts, std::size_t part_bytes, std::size_t page);
  address_range(const address_range&) = delete;
  address_range& operator=(const address_range&) = delete;
  ~address_range();

  /// Maps `memory`, of `bytes` bytes, at `offset` of part `part`. The mapping keeps the memory
  /// alive.
  void map(int part, std::size_t offset, std::size_t bytes, const allocation& memory);
  /// Lets `devices` read and write the memory that is mapped there.
  [[nodiscard]] CUresult allow(int part, std::size_t offset, std::size_t bytes,
                               const std::vector<int>& devices) const;

  [[nodiscard]] std::byte* base() const noexcept { return part(0); }
  [[nodiscard]] std::byte* part(int number) const noexcept {
    return reinterpret_cast<std::byte*>(at(number));
  }

 private:
  [[nodiscard]] CUdeviceptr at(int part) const noexcept {
    return base_ + static_cast<std::size_t>(part) * part_bytes_;
  }

  struct mapping {
    CUdeviceptr at = 0;
    std::size_t bytes = 0;
  };

  CUdeviceptr base_ = 0;
  std::size_t bytes_;
  std::size_t part_bytes_;
  std::mutex mutex_;  // protects the following member
  std::vector<mapping> mapped_;
};

}  // namespace untax::gpu
