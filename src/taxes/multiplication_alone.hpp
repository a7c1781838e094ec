#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/core/matrix.hpp>

#include "engines/host/team.hpp"
#include "engines/host/tile_math.hpp"
#include "ops/common/workload.hpp"

namespace untax {

/// The distribution of a rank's multiplication over its workers.
enum class alone_way : std::uint8_t {
  one_call,    ///< one worker, one library GEMM
  by_columns,  ///< each worker has a part of the columns, as one library GEMM
  by_tiles     ///< each worker has consecutive tiles of the size of the fused patterns
};
inline constexpr alone_way alone_ways[] = {alone_way::one_call, alone_way::by_columns,
                                           alone_way::by_tiles};

/// The multiplication of one rank with all operands local, with the workers and the tile sizes of
/// the fused patterns: the same arithmetic, and nothing else.
class multiplication_alone {
 public:
  multiplication_alone(const gemm_problem& problem, const gemm_share& share,
                       const protocol_plan& plan);

  void run(alone_way way, const matrix& weights);
  [[nodiscard]] const_matrix result() const noexcept;
  [[nodiscard]] matrix a() noexcept;

 private:
  /// A part of the result.
  struct block {
    range rows;
    range cols;
  };
  void multiply(host::tile_math& math, const block& part, const host::operand_table& operands);
  [[nodiscard]] std::size_t bytes(std::int64_t rows, std::int64_t cols) const;

  std::int64_t rows_;
  std::int64_t depth_;
  std::int64_t cols_;
  dtype type_;
  int workers_;
  std::vector<block> tiles_;  ///< column by column, so that weights are widened once
  std::vector<std::byte> a_;
  std::vector<std::byte> c_;
  host::tile_math whole_;
  std::vector<host::tile_math> of_columns_;  ///< by worker
  std::vector<host::tile_math> of_tiles_;    ///< by worker
  host::team team_;
};

}  // namespace untax
