#pragma once

#include <cstdint>

namespace untax::sm90 {

/// Copies 16 bytes to shared memory, past the first cache; zeros where `there` is false, and then
/// `from` is not read. Complete once wait_for_copies says so, to the thread that asked for it.
/// It asks for no more than that: with L2::256B some multiprocessors get a third more of the
/// memory's rate than others, and all that read as much as each other wait for the slow ones.
/// Compilers keep it in order with the instructions of this file and with load_matrices only.
__device__ inline void copy_16_bytes(std::uint32_t to, const void* from, bool there) {
  const int size = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(size));
}

/// What the thread asked for since the last call becomes one group.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the last `left` groups of the thread are not complete.
template <int left>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

}  // namespace untax::sm90
