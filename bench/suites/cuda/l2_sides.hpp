#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/suites/cuda/vectors.cuh"

namespace untax::bench {

/// The half of the L2 cache that each multiprocessor of the current device belongs to.
struct l2_sides {
  std::vector<std::uint8_t> of_sm;  ///< by %smid: 0 or 1
  double near_cycles = 0;           ///< of an atomic whose home is the own side
  double far_cycles = 0;            ///< of an atomic whose home is the other side

  [[nodiscard]] int count(int side) const;
};

/// The bytes of a chunk, which has its home on one side.
inline constexpr std::size_t l2_chunk = 4096;
/// The address of the first whole chunk of some memory.
[[nodiscard]] std::byte* first_chunk(const device_buffer& memory);

/// Finds the sides: every multiprocessor times atomics, which are executed at their home, on one
/// chunk. Side 0 is that of multiprocessor 0. Throws `unsupported` if times do not form two groups.
[[nodiscard]] l2_sides find_l2_sides();

/// The home of each chunk of memory of the current device, by the times of both sides. The contents
/// of the memory do not change.
[[nodiscard]] std::vector<std::uint8_t> homes_of_chunks(const l2_sides& sides, void* memory,
                                                        std::size_t bytes);

/// Reads chunks past the first-level cache: the multiprocessors of each side read one list.
class chunk_reader {
 public:
  /// Both `lists` have the same length. The memory has to outlive this object. Throws `internal`.
  chunk_reader(const l2_sides& sides, const std::byte* memory,
               std::array<const std::vector<std::int32_t>*, 2> lists, int passes);

  /// Launches the reads; asynchronous.
  void run(cudaStream_t stream) const;

 private:
  const std::byte* memory_;
  std::int64_t chunks_;
  int passes_;
  unsigned blocks_;
  std::vector<device_buffer> tables_;  ///< of multiprocessors, both lists, and the chunks that are
                                       ///< read
};

}  // namespace untax::bench
