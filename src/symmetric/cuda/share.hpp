#pragma once

#include <cstddef>
#include <utility>

#include "src/symmetric/device_memory.hpp"
#include "vmm.hpp"

namespace untax::gpu {

[[nodiscard]] device_id id_of(int device);

/// Memory of a rank of this process.
class cuda_share final : public device_share {
 public:
  /// Throws `out_of_memory`, and `internal` if the memory is `shared` and cannot be exported.
  cuda_share(int rank, int device, std::size_t bytes, bool shared);
  cuda_share(const cuda_share&) = delete;
  cuda_share& operator=(const cuda_share&) = delete;
  ~cuda_share() override;

  [[nodiscard]] int descriptor() const noexcept override { return descriptor_; }
  [[nodiscard]] device_id id() const noexcept override { return id_; }
  [[nodiscard]] const allocation& memory() const noexcept { return memory_; }
  [[nodiscard]] allocation take() noexcept { return std::move(memory_); }

 private:
  allocation memory_;
  int descriptor_ = -1;
  device_id id_;
};

}  // namespace untax::gpu
