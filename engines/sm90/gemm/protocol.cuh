#pragma once

namespace untax::sm90 {

/// Which part of C a role is about to read for, or has written: first row and column.
struct tile_place {
  int row = 0;
  int column = 0;
};

/// What a GEMM does with others than itself: nothing. A protocol is a struct that is passed to the
/// kernel by value, and this is its form.
struct alone {
  /// Whether anybody is told of stores before the kernel ends.
  static constexpr bool signals = false;

  /// By the loader's one thread, before it reads A for a tile.
  __device__ void before_tile(const tile_place& /*tile*/) const {}
  /// By a storer's one thread, when it has asked for all stores of its half of a tile: 64 rows of
  /// x.
  __device__ void after_tile(const tile_place& /*tile*/) const {}
  /// By each storer's one thread at the end, when all its stores are done.
  __device__ void after_all() const {}
};

}  // namespace untax::sm90
