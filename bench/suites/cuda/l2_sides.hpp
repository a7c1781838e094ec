#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/suites/cuda/vectors.cuh"

namespace untax::bench {

/// Which half of the L2 cache each multiprocessor of the current device is at.
struct l2_sides {
  std::vector<std::uint8_t> of_sm;  ///< by %smid: 0 or 1
  double near_cycles = 0;           ///< that an atomic takes at the side of the multiprocessor
  double far_cycles = 0;            ///< and at the other one

  [[nodiscard]] int count(int side) const;
};

/// Bytes whose home is one side; the next ones may have the other.
inline constexpr std::size_t l2_chunk = 4096;
/// Where the first whole chunk of some memory begins.
[[nodiscard]] std::byte* first_chunk(const device_buffer& memory);

/// Finds the sides: every multiprocessor times atomics, which are done at home, on one chunk. Side
/// 0 is that of multiprocessor 0. Throws `unsupported` where times do not fall into two groups.
[[nodiscard]] l2_sides find_l2_sides();

/// The home of each chunk of memory of the current device, by the times of both sides. The memory
/// keeps what it holds.
[[nodiscard]] std::vector<std::uint8_t> homes_of_chunks(const l2_sides& sides, void* memory,
                                                        std::size_t bytes);

/// Reads chunks of memory, past the first-level cache: a list by the multiprocessors of each side.
class chunk_reader {
 public:
  /// `lists` are as long as each other. The memory has to stay. Throws `internal`.
  chunk_reader(const l2_sides& sides, const std::byte* memory,
               std::array<const std::vector<std::int32_t>*, 2> lists, int passes);

  /// Starts it.
  void run(cudaStream_t stream) const;

 private:
  const std::byte* memory_;
  std::int64_t chunks_;
  int passes_;
  unsigned blocks_;
  std::vector<device_buffer> tables_;  ///< of multiprocessors, both lists, what is read
};

}  // namespace untax::bench
