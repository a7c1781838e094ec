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

  /// What a rank has.
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

  /// Lengths, and pages in random order.
  void prepare(const attention_row& row);
  /// How many runs one graph holds. Those that follow each other read other regions of the cache,
  /// together more than any other cache holds.
  [[nodiscard]] int runs_of(const attention_row& row) const;
  [[nodiscard]] attention_shard shard_of(const attention_row& row, int rank, int run) const;
  /// q, or a result.
  [[nodiscard]] static matrix rows_of(const attention_row& row, const device_buffer& memory);

 private:
  [[nodiscard]] int regions_of(const attention_row& row) const;

  gpu_team& team_;
  std::vector<std::unique_ptr<of_rank>> ranks_;
  double cache_bytes_;
};

}  // namespace untax::bench
