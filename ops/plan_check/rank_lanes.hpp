#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <untax/tile/shard.hpp>

#include "engines/gpu/gemm/cta_reads.hpp"
#include "engines/schedule/lanes.hpp"

namespace untax::plan_check {

/// K-blocks of a tile that lie in one place each: what a CTA multiplies, where it lies, and what it
/// waits for before. Lengths are those that there are; what lies beyond a matrix is zero.
struct factors {
  std::int64_t rows = 0;   ///< of A, and of C
  std::int64_t cols = 0;   ///< rows of B, columns of C
  std::int64_t depth = 0;  ///< columns of A, and of B
  place a;
  place b;
  place c;
  struct signal {
    int counter = 0;
    int producer = 0;
  };
  /// What has to be acquired, beside what comes before it, to multiply so far into `depth`.
  struct ready {
    std::int64_t depth = 0;
    std::vector<signal> signals;
  };
  std::shared_ptr<const std::vector<ready>> waits;
};

/// The CTAs of a planned GEMM, as far as they depend on where A comes from and C goes to.
struct gemm_lanes {
  const gpu::gemm_plan* plan = nullptr;
  std::int64_t k = 0;  ///< of the whole product
  room_sets sets;      ///< of what is awaited
  /// Calls `visit` for what a CTA reads, part by part.
  std::function<void(const gpu::cta_read&, std::uint64_t epoch,
                     const std::function<void(const factors&)>& visit)>
      read;
  /// Emits the step that completes a tile, and what the CTA does with the tile then.
  std::function<void(const step& completes, std::uint64_t epoch, const program::sink& emit)> store;
  /// Rows of A that are of one rank each; none: all are.
  std::vector<range> rows_of_ranks;
};

/// What the kernels of a rank do in a run, put together lane by lane.
class rank_lanes {
 public:
  explicit rank_lanes(const schedule::lane_program::rank_memory& memory)
      : rank_(memory.rank), lanes_(memory) {}

  /// Lanes added from here on belong to this kernel.
  void begin_kernel(const char* name, int stage) { lanes_.begin_kernel(name, stage); }
  /// A flag between lanes. One that does not order only makes lanes wait, and is made before all
  /// that do.
  [[nodiscard]] int flag(bool orders = true) { return lanes_.add_flag(orders); }
  /// A lane that begins behind some flags, and raises one at its end; -1: none.
  void add(const std::vector<int>& behind, const schedule::lane_program::lane& body,
           int raises = -1);
  /// A lane for each CTA of a GEMM; CTA i begins behind `behind[i]`. The flags that they raise at
  /// their ends.
  [[nodiscard]] std::vector<int> add_gemm(const gemm_lanes& gemm,
                                          const std::vector<std::vector<int>>& behind);

  [[nodiscard]] schedule::lane_program take() { return std::move(lanes_); }

 private:
  int rank_;
  schedule::lane_program lanes_;
};

}  // namespace untax::plan_check
