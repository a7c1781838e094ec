#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>
#include <untax/tile/step.hpp>

#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/copy/matrix_at.hpp"
#include "engines/gpu/copy/moved_operands.hpp"
#include "engines/gpu/gemm/cta_reads.hpp"
#include "engines/gpu/gemm/owned_rows.hpp"
#include "engines/schedule/lanes.hpp"

namespace untax::plan_check {

/// K-blocks of a tile that are each contiguous: the operands that a CTA multiplies, their places,
/// and the waits before. Sizes are the actual ones; elements beyond a matrix are zero.
struct factors {
  std::int64_t rows = 0;   ///< of A, and of C
  std::int64_t cols = 0;   ///< rows of B, columns of C
  std::int64_t depth = 0;  ///< columns of A, and of B
  place a;
  place b;
  place c;
  /// A room to acquire before the product goes on from `depth`.
  struct wait {
    std::int64_t depth = 0;
    int counter = 0;
    int producer = 0;
  };
  std::vector<wait> waits;  ///< in the order of `depth`
};

/// A wait of `consumer` until `producer` has raised a counter to `use`.
[[nodiscard]] step acquires(int producer, int consumer, int counter, std::uint64_t use);

/// The addresses of operands, as one rank sees them: rows of elements of 2 bytes, without gaps.
/// There is no memory at these addresses; they only show the accesses of a planned kernel.
class operand_space {
 public:
  void add(operand role, int rank, std::int64_t address, const extent& size);

  /// The operand at a rectangle whose rows begin `stride` elements apart; `none` unless all of it
  /// is one rectangle of one operand.
  [[nodiscard]] place rectangle(const void* first, std::int64_t stride, std::int64_t rows,
                                std::int64_t cols) const;
  /// As above, for a part of a matrix.
  [[nodiscard]] place rectangle(const gpu::matrix_at& in, std::int64_t row, std::int64_t col,
                                std::int64_t rows, std::int64_t cols) const;
  /// The rectangle of a step, among the operands of a sender.
  [[nodiscard]] place moved(const gpu::moved_operands& operands, const place& p,
                            const step& s) const {
    return rectangle(operands.at(p), operands.stride_of(p.of), s.rows, s.cols);
  }
  /// The steps of senders that execute those of their program, by the addresses that they access.
  [[nodiscard]] comm::step_source moved_steps(const gpu::moved_operands& operands,
                                              const comm::step_source& steps) const;
  /// The factors of a tile that a CTA multiplies: the given columns of `a` and `b`, as far as the
  /// matrices reach. Rows of A begin at row `a_row` of `a`, those of C at `c_row` of `c`.
  [[nodiscard]] factors multiplied(const gpu::cta_read& tile_read, const gpu::matrix_at& a,
                                   std::int64_t a_row, const gpu::matrix_at& b,
                                   const gpu::matrix_at& c, std::int64_t c_row,
                                   const range& columns) const;

 private:
  struct region {
    place first;
    std::int64_t address = 0;
    extent size;
  };

  [[nodiscard]] place at(std::int64_t address, std::int64_t cols) const;

  std::vector<region> regions_;
};

/// A work of a CTA: see `gpu::each_read`.
struct cta_work {
  int cta = 0, number = 0;
};

/// The CTAs of a planned GEMM, with the parts that depend on the source of A and the destination of
/// C.
struct gemm_lanes {
  const gpu::gemm_plan* plan = nullptr;
  std::int64_t k = 0;  ///< of the whole product
  room_sets sets;      ///< room sets of the awaited rooms
  /// Calls `visit` for each part of the data that a CTA reads.
  std::function<void(const gpu::cta_read&, std::uint64_t epoch,
                     const std::function<void(const factors&)>& visit)>
      read;
  /// Emits the step that completes a tile, and the CTA's steps with the tile after that.
  std::function<void(const cta_work&, const step& completes, std::uint64_t epoch,
                     const program::sink& emit)>
      store;
  /// Emits the steps of a CTA before it first acquires data. May be empty.
  std::function<void(const cta_work&, std::uint64_t epoch, const program::sink& emit)> before_waits;
  /// Emits the steps of a CTA before each work, and after the last one. May be empty.
  std::function<void(const cta_work&, std::uint64_t epoch, const program::sink& emit)> before;
  /// Rows of A that belong to one rank each; empty: all belong to one.
  std::vector<range> rows_of_ranks;
};

/// The CTAs of a GEMM over a rank's part of k, which may be empty. `order` is that of the rows of
/// A. `store` emits the stores of products.
[[nodiscard]] gemm_lanes partial_products(const gpu::gemm_plan& plan,
                                          const schedule::operand_extents& operands, int rank,
                                          const gpu::row_rotation& order);

/// Rows and columns of the result that a CTA computes at a time.
[[nodiscard]] extent tile_extent(const gpu::tile_config& c);

/// Adds a lane for each CTA of a GEMM. CTA i first waits for the flags `behind[i]`; empty: for
/// none. Returns the flags that they raise at their ends.
[[nodiscard]] std::vector<int> add_gemm(schedule::lane_program& lanes, const gemm_lanes& gemm,
                                        std::vector<std::vector<int>> behind = {});

}  // namespace untax::plan_check
