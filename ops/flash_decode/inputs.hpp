#pragma once

#include <cstdint>
#include <vector>

#include <untax/ops/flash_decode_problem.hpp>

#include "ops/common/random_matrix.hpp"

namespace untax {

/// A problem, and how the keys are sharded.
struct attention_work {
  flash_decode_problem problem;
  /// Each rank holds a random number of keys of each sequence, sometimes none, rather than as many
  /// as it can.
  bool uneven = false;
};

/// The data of all ranks, from N(0, 1): any rank can make any part of it.
class attention_inputs {
 public:
  attention_inputs(const attention_work& work, int world, std::uint64_t seed)
      : work_(work), world_(world), seed_(seed) {}

  [[nodiscard]] std::int32_t length(int rank, std::int64_t sequence) const;
  /// q, as wide as the result.
  void fill_queries(const matrix& to) const;
  /// The cache of a rank. Rows without a key are NaN. `table` gets random pages.
  void fill_cache(int rank, const matrix& keys, const matrix& values,
                  std::vector<std::int32_t>& lengths, std::vector<std::int32_t>& table) const;
  /// The result in fp64, [batch * heads, head_dim], and the error that a result may have.
  struct reference {
    std::vector<double> values;
    std::vector<double> squares;  ///< for each row, the expected square of an element
    double tolerance = 0;
    double share = 0;  ///< as the `share` of deviation::add_row
  };
  [[nodiscard]] reference result() const;

 private:
  /// Row `key` of a rank's part of a sequence, of all heads.
  void fill_row(std::uint64_t which, int rank, std::int64_t sequence, std::int64_t key,
                const matrix& to) const;

  attention_work work_;
  int world_;
  std::uint64_t seed_;
};

/// The largest relative error of a correct result.
[[nodiscard]] double tolerance_of(const flash_decode_problem& problem) noexcept;

/// The relative error of a result, as `deviation` defines it; `result` has no gaps.
[[nodiscard]] double relative_error(const const_matrix& result,
                                    const attention_inputs::reference& right);

}  // namespace untax
