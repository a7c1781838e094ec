#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include <untax/core/host_device.hpp>

#include "engines/sm90/ptx/barrier.cuh"

namespace untax::sm90 {

/// Which part of C a role is about to read for, or has written: first row and column. With a
/// protocol that turns rows around, the row is one of the order in which they are gone through.
struct tile_place {
  int row = 0;
  int column = 0;
};

/// Slices of both operands that lie in one place each, and arrive together.
struct stretch {
  const CUtensorMap* a = nullptr;
  int a_row = 0;  ///< in the matrix that `a` describes
  const CUtensorMap* b = nullptr;
  int first = 0;  ///< the slice at column 0 of both matrices
  int end = 0;    ///< the slice after the last one
};

/// Where a part of C goes.
struct destination {
  const CUtensorMap* c = nullptr;
  int row = 0;  ///< in the matrix that `c` describes
};

/// What a storer's warp has until its first chunk comes: the memory for that, to move other things
/// through.
struct storer_memory {
  std::byte* bytes = nullptr;      ///< at a multiple of 1024; none of a warp that stores nothing
  stage_barrier* moved = nullptr;  ///< of one arrival, in its first phase
};

/// Where the loader brings all of A, nobody else does. Where the math brings rows of it to the
/// stages, this is the form; all threads of a math warpgroup call it.
struct no_rows {
  /// How many stages they are brought for together.
  static constexpr int stages = 0;

  /// Asks for those of so many of its slices from `slice` on. Returns what knows of them.
  struct asked {};
  __device__ asked ask(int slice, int count) const;
  /// Waits for them, and writes those of slice i to `place(i)`, as the tensor cores take them. Rows
  /// beyond those of A may be left as they are.
  template <class Place>
  __device__ void settle(asked& rows, int count, const Place& place);
};

/// What a GEMM does with others than itself: nothing. A protocol is a struct that is passed to the
/// kernel by value. Its `at_block`, which each thread makes for itself, has this form, and all of
/// it is called by the roles of a block.
struct alone {
  /// Whether the launch only serves to load the kernel.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr bool dry() { return false; }
  /// Blocks before those that multiply.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int leading_blocks() { return 0; }

  class at_block {
   public:
    static constexpr bool moves = false;    ///< bytes, beside multiplying
    static constexpr bool waits = false;    ///< for A
    static constexpr bool brings = false;   ///< A to the math, past the loader
    static constexpr bool retires = false;  ///< what it has read
    static constexpr bool signals = false;  ///< that C is stored

    __device__ at_block(const alone& /*protocol*/, const CUtensorMap& a, const CUtensorMap& b,
                        const CUtensorMap& c, int slices)
        : a_(a), b_(b), c_(c), slices_(slices) {}
    /// All threads, when the kernels ahead have ended. Before that memory is not touched.
    __device__ void begin() {}

    /// The stretch in which a slice lies, for rows of A from a tile's first one on. Before `begin`
    /// only what it says of B holds.
    [[nodiscard]] __device__ stretch stretch_of(int row, int /*slice*/) const {
      return {&a_, row, &b_, 0, slices_};
    }
    /// How many copies of C a tile goes to, and where; copy 0 is this rank's.
    [[nodiscard]] __device__ static constexpr int copies() { return 1; }
    [[nodiscard]] __device__ destination copy_of(int row, int /*copy*/) const { return {&c_, row}; }

   private:
    const CUtensorMap& a_;
    const CUtensorMap& b_;
    const CUtensorMap& c_;
    int slices_;
  };
};

// What the form has beside that, where the constants above ask for it:
//
//   moves:    void prepare_to_lead(), void prepare_beside(int warp)   before `begin`, by those who
//                                  call `lead` and `beside` after it
//             void lead(std::byte* shared)  all threads of a leading block, which has `lead_bytes`
//                                  of shared memory at least
//             void beside(int warp, storer_memory own)  the four warps beside those that
//                                  multiply, before their roles
//             void finish()        all threads of any block, when it has read A and stored C
//   retires:  bool counts_readers()   whether it is called in this launch:
//             void retire()        the loader's warp, when the block has read what it needs of A
//   waits:    int come(int row, int rows, int begin, int end)  a warp: up to which slice these
//             rows of A have come, of slices of one stretch; void await(...) waits for all of
//             them. Both are called by the loader's warp, or, if `bool scouts()`, by the fourth
//             one, ahead of it; the loader asks `bool is_there(int row, int slice)` then, whether
//             nothing has to come for that stretch
//   brings:   rows rows_for(int group)    what brings A to a math warpgroup: see `no_rows`
//   signals:  void before_store()  a storer's warp, before its first store
//             bool in_turn()       whether a tile is stored before its place is used again
//             void after_tile(tile_place)  a storer's thread, when it has asked for all stores of
//                                  its half of a tile
//             void after_all()     when all its stores are done

}  // namespace untax::sm90
