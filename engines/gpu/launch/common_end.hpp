#pragma once

#include <untax/core/error.hpp>
#include <untax/world/world.hpp>

namespace untax::gpu {

/// The end of an operator in a world of GPUs: the first member of a class that owns kernels and
/// their memory, and so destroyed last. Its destructor is a barrier of all ranks: freeing memory of
/// a GPU may wait for kernels of peers, which may wait for this rank, so no rank goes on before all
/// of them have freed theirs. There is no barrier if the world was stopped, or if an exception is
/// about to stop it.
class common_end {
 public:
  /// `w` has to outlive it.
  explicit common_end(world& w) : world_(&w.stable_view()) {}
  common_end(const common_end&) = delete;
  common_end& operator=(const common_end&) = delete;
  ~common_end() {
    if (world_->unwinding() || world_->stopped()) return;
    try {
      world_->barrier();
    } catch (const error&) {
      // The world was stopped meanwhile; nothing is left to be done.
      return;
    }
  }

 private:
  world* world_;
};

}  // namespace untax::gpu
