#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include <untax/core/host_device.hpp>

#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// Which part of C a role is about to read for, or has written: first row and column. With a
/// protocol that turns rows around, the row is one of the order in which they are gone through.
struct tile_place {
  int row = 0;
  int column = 0;
};

/// K-blocks of both operands that lie in one place each, and arrive together.
struct operand_window {
  const CUtensorMap* a = nullptr;
  int a_row = 0;  ///< in the matrix that `a` describes
  const CUtensorMap* b = nullptr;
  int first = 0;  ///< the k-block at column 0 of both matrices
  int end = 0;    ///< the k-block after the last one
};

/// Where a part of C goes.
struct destination {
  const CUtensorMap* c = nullptr;
  int row = 0;  ///< in the matrix that `c` describes
};

/// What an epilogue warp has until its first sub-tile comes: the memory for that, to move
/// other things through.
struct epilogue_smem {
  std::byte* bytes = nullptr;      ///< at a multiple of 1024; none of a warp that stores nothing
  stage_barrier* moved = nullptr;  ///< of one arrival, in its first phase
};

/// Where the producer brings all of A, nobody else does. Where the consumer brings rows of it to
/// the stages, this is the form; all threads of an MMA warpgroup call it.
struct no_rows {
  /// How many stages they are brought for together.
  static constexpr int stages = 0;

  /// Asks for those of so many of its k-blocks from `k_block` on. Returns what knows of them.
  struct asked {};
  __device__ asked ask(int k_block, int count) const;
  /// Waits for them, and writes those of k-block i to `place(i)`, as the tensor cores take them.
  /// Rows beyond those of A may be left as they are.
  template <class Place>
  __device__ void settle(asked& rows, int count, const Place& place);
};

/// What a GEMM does with others than itself: nothing. A protocol is a struct that is passed to the
/// kernel by value. Its `block_io`, which each thread makes for itself, has this form, and all of
/// it is called by the roles of a block.
struct local_io {
  /// Whether the launch only serves to load the kernel.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr bool dry() { return false; }
  /// Blocks before those that multiply.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int comm_cta_count() { return 0; }

  class block_io {
   public:
    static constexpr bool moves = false;    ///< bytes, beside multiplying
    static constexpr bool waits = false;    ///< for A
    static constexpr bool brings = false;   ///< A to the consumer, past the producer
    static constexpr bool retires = false;  ///< what it has read
    static constexpr bool signals = false;  ///< that C is stored

    __device__ block_io(const local_io& /*protocol*/, const CUtensorMap& a, const CUtensorMap& b,
                        const CUtensorMap& c, int k_blocks)
        : a_(a), b_(b), c_(c), k_blocks_(k_blocks) {}
    /// All threads, when the kernels ahead have ended. Before that memory is not touched.
    __device__ void begin() {}

    /// The window in which a k-block lies, for rows of A from a tile's first one on. Before `begin`
    /// only what it says of B holds.
    [[nodiscard]] __device__ operand_window window_of(int row, int /*k_block*/) const {
      return {&a_, row, &b_, 0, k_blocks_};
    }
    /// How many copies of C a tile goes to, and where; copy 0 is this rank's.
    [[nodiscard]] __device__ static constexpr int copies() { return 1; }
    [[nodiscard]] __device__ destination copy_of(int row, int /*copy*/) const { return {&c_, row}; }

   private:
    const CUtensorMap& a_;
    const CUtensorMap& b_;
    const CUtensorMap& c_;
    int k_blocks_;
  };
};

// What the form has beside that, where the constants above ask for it:
//
//   moves:    void prepare_comm(), void prepare_beside(int warp)   before `begin`, by those who
//                                  call `run_comm` and `beside` after it
//             void run_comm(std::byte* shared)  all threads of a communication CTA, which has
//                                  `comm_smem_bytes` of shared memory at least
//             void beside(int warp, epilogue_smem own)  the four warps beside those that
//                                  multiply, before their roles
//             void finish()        all threads of any block, when it has read A and stored C
//   retires:  bool counts_readers()   whether it is called in this launch:
//             void retire()        the producer, when the block has read what it needs of A
//   waits:    int come(int row, int rows, int begin, int end)  a warp: up to which k-block these
//             rows of A have come, of k-blocks of one window; void await(...) waits for all of
//             them. Both are called by the producer, or, if `bool polls()`, by the fourth warp,
//             ahead of it; then the producer asks `bool is_there(int row, int k_block)`, whether
//             nothing has to come for that window
//   brings:   rows rows_for(int group)    what brings A to an MMA warpgroup: see `no_rows`
//   signals:  void before_store()  an epilogue warp, before its first store
//             bool in_turn()       whether a tile is stored before its place is used again
//             void after_tile(tile_place)  a thread of an epilogue warp, when it has asked for all
//                                  stores of its half of a tile
//             void after_all()     when all its stores are done

}  // namespace untax::gpu
