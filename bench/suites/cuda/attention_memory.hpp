#pragma once

#include <memory>
#include <vector>

#include <untax/ops/flash_decode.hpp>

#include "bench/suites/attention.hpp"
#include "bench/suites/cuda/vectors.cuh"
#include "src/taxes/cuda/gpu_team.hpp"

namespace untax::bench {

/// Queries, caches and results of all ranks, large enough for all problems.
class attention_memory {
 public:
  attention_memory(gpu_team& team, const std::vector<attention_row>& rows);

  /// The memory of one rank.
  struct of_rank {
    of_rank(std::size_t cache_bytes, std::size_t rows_bytes, std::size_t small_bytes);
    device_buffer cache;
    device_buffer q;
    device_buffer out;
    device_buffer right;
    device_buffer lengths;
    device_buffer table;
    device_buffer scratch;
  };
  [[nodiscard]] const of_rank& at(int rank) const {
    return *ranks_[static_cast<std::size_t>(rank)];
  }

  /// Copies lengths and a random page table to all ranks.
  void prepare(const attention_row& row);
  /// The number of runs in a graph. Consecutive runs read different regions of the KV cache, which
  /// together exceed the hardware caches.
  [[nodiscard]] int runs_of(const attention_row& row) const;
  [[nodiscard]] attention_shard shard_of(const attention_row& row, int rank, int run) const;
  /// The rows of q or of a result in `memory`.
  [[nodiscard]] static matrix rows_of(const attention_row& row, const device_buffer& memory);

 private:
  [[nodiscard]] int regions_of(const attention_row& row) const;

  gpu_team& team_;
  std::vector<std::unique_ptr<of_rank>> ranks_;
  double cache_bytes_;
};

}  // namespace untax::bench
