#pragma once

#include <cstdint>
#include <vector>

#include <untax/core/matrix.hpp>

namespace untax {

/// The result of one query.
struct attended_row {
  std::vector<double> out;  ///< head_dim elements; zeros if the query sees no keys
  double log_sum = 0;       ///< of the exponentials of scaled logits; minus infinity without keys
};

/// Keys and values of one head of a sequence, to which rows attend in fp64 by the definition: first
/// the maximum, then the sums.
class attended_keys {
 public:
  /// Both [keys, head_dim], with strides.
  attended_keys(const const_matrix& keys, const const_matrix& values, double scale);

  /// softmax(scale * query keys^T) values over the first `sees` keys. `query`: [1, head_dim].
  [[nodiscard]] attended_row attend(const const_matrix& query, std::int64_t sees) const;

 private:
  std::vector<float> keys_;
  std::vector<float> values_;
  double scale_;
};

/// The number of keys that row `row` of `queries` sees. If causal, the last row sees all.
[[nodiscard]] std::int64_t seen_keys(std::int64_t row, std::int64_t queries, std::int64_t keys,
                                     bool causal) noexcept;

}  // namespace untax
