#pragma once

#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include <untax/locality/kernel.hpp>
#include <untax/locality/simulate.hpp>

#include "bench/suites/cuda/vectors.cuh"
#include "engines/gpu/flash_attention/sm_queues.hpp"
#include "src/symmetric/cuda/driver.hpp"

namespace untax::bench {

/// Copies a table to the current device. Throws `internal`.
template <class T>
[[nodiscard]] device_buffer uploaded(const std::vector<T>& values) {
  device_buffer made(values.size() * sizeof(T));
  gpu::require(
      cudaMemcpy(made.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
      "cannot copy a table to the GPU");
  return made;
}

/// A kernel of `untax locality` in one order, ready to run. Its reads and writes follow the
/// description, block by block and step by step, and so does the number of blocks on a
/// multiprocessor.
class replay {
 public:
  struct settings {
    double step_seconds = 0;  ///< pause after the reads of each step
    /// The queue of each multiprocessor. Blocks take positions when they become free, from one of
    /// two queues: those below `second`, and the others. Empty: in the order of dispatch.
    std::vector<std::uint8_t> queue_of_sm;
    int second = 0;
    std::uint64_t seed = 0;  ///< of the contents of operands; 0: zeros
  };

  /// Prepares the replay on the current device. Throws `unsupported` if rectangles of a kernel
  /// differ in size, and `internal`.
  replay(const locality::kernel& k, const locality::schedule& s, const settings& how);

  /// Launches the kernel. Runs of one object must not overlap.
  void run(cudaStream_t stream) const;

 private:
  static constexpr int most_accesses = 8;

  /// An access of all blocks to an operand, as `locality::access`, but in bytes.
  struct access {
    std::byte* operand = nullptr;
    std::int64_t pitch = 0;  ///< of a row of the operand
    std::int64_t end_row = 0;
    std::int64_t row_per_step = 0;
    std::int64_t bytes = 0;  ///< of a row of the rectangle
    std::int64_t begin_per_step = 0;
    int rows = 0;
    bool is_write = false;
    locality::moment when = locality::moment::every_step;
  };

 public:
  /// The arguments of the kernel. Each position of the dispatch has a record: the steps of its
  /// block and, for each access, the row and the byte in it at which the rectangle begins. A record
  /// is short, and read once, so that counters see little else than the replay.
  struct arguments {
    access accesses[most_accesses];
    int each = 0;
    const int* records = nullptr;
    int record_words = 0;
    bool backward = false;
    long long pause = 0;  ///< cycles after the reads of a step
    unsigned* sink = nullptr;
    gpu::sm_queues positions;  ///< `taken` null: positions of the dispatch
  };

 private:
  void fill_operands(const locality::kernel& k, std::uint64_t seed);
  void choose_residents(int resident);
  [[nodiscard]] access replayed(const locality::kernel& k, const locality::access& a) const;

  int blocks_;
  int threads_ = 0;
  int shared_bytes_ = 0;
  std::vector<device_buffer> operands_;
  std::vector<device_buffer> tables_;
  arguments run_;
};

}  // namespace untax::bench
