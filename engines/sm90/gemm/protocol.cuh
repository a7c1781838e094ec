#pragma once

#include <cstdint>

#include <cuda.h>

#include <untax/core/host_device.hpp>

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
//             void beside(int warp)  the four warps beside those that multiply, before their roles
//             void finish()        all threads of any block, when it has read A and stored C
//   retires:  void retire()        the loader's warp, when the block has read what it needs of A
//   waits:    int come(int row, int rows, int begin, int end)   a warp: up to which slice these
//   rows
//             of A have come, of slices of one stretch; void await(...) waits for all of them. Both
//             are called by the loader's warp, or, if `bool scouts()`, by the fourth one, ahead of
//             it; the loader asks `bool is_there(int row, int slice)` then, whether nothing has to
//             come for that stretch
//   signals:  void before_store()  a storer's warp, before its first store
//             bool in_turn()       whether a tile is stored before its place is used again
//             void after_tile(tile_place)  a storer's thread, when it has asked for all stores of
//                                  its half of a tile
//             void after_all()     when all its stores are done

}  // namespace untax::sm90
