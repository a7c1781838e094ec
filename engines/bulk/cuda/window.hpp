#pragma once

#include <cstddef>

#include <untax/world/world.hpp>

#include "engines/bulk/communicator.hpp"

namespace untax::bulk {

/// Memory of this rank's GPU that NCCL has allocated and registered as a symmetric window: its
/// collectives between such memory run other kernels, which are quicker for short vectors.
/// Construction and destruction are collective; the communicator has to outlive it.
class window {
 public:
  /// Throws `unsupported` where NCCL has no windows: before 2.27, or on this machine.
  window(const world& w, const communicator& c, std::size_t bytes);
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window();

  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  void* communicator_;
  void* data_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace untax::bulk
