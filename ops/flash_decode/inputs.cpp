#include "ops/flash_decode/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include "engines/host/convert.hpp"
#include "ops/common/deviation.hpp"
#include "ops/flash_decode/planning.hpp"

namespace untax {
namespace {

/// The index of a random matrix.
enum : std::uint64_t { of_queries, of_keys, of_values, of_lengths };

/// A softmax for one query head, updated with one key after the other.
class running_softmax {
 public:
  explicit running_softmax(std::int64_t width) : sum_(static_cast<std::size_t>(width)) {}

  void add(double logit, const float* values) {
    const double most = std::max(most_, logit);
    const double kept = std::exp(most_ - most);
    const double weight = std::exp(logit - most);
    total_ = total_ * kept + weight;
    squares_ = squares_ * kept * kept + weight * weight;
    for (std::size_t j = 0; j < sum_.size(); ++j)
      sum_[j] = sum_[j] * kept + weight * static_cast<double>(values[j]);
    most_ = most;
  }
  [[nodiscard]] double result(std::size_t j) const { return total_ > 0 ? sum_[j] / total_ : 0; }
  /// The expected square of an element, for values from N(0, 1).
  [[nodiscard]] double expected() const { return total_ > 0 ? squares_ / (total_ * total_) : 0; }

 private:
  double most_ = -std::numeric_limits<double>::infinity();
  double total_ = 0;
  double squares_ = 0;
  std::vector<double> sum_;
};

/// A row of elements, rounded to their type.
class rounded_row {
 public:
  rounded_row(dtype type, std::int64_t width)
      : type_(type),
        bytes_(static_cast<std::size_t>(width) * size_of(type)),
        values_(static_cast<std::size_t>(width)) {}

  [[nodiscard]] matrix target() {
    return {bytes_.data(), type_, 1, static_cast<std::int64_t>(values_.size())};
  }
  const float* widened() {
    const auto width = static_cast<std::int64_t>(values_.size());
    host::widen({bytes_.data(), width, type_}, 1, width, values_.data(), width);
    return values_.data();
  }

 private:
  dtype type_;
  std::vector<std::byte> bytes_;
  std::vector<float> values_;
};

}  // namespace

std::int32_t attention_inputs::length(int rank, std::int64_t sequence) const {
  const std::int64_t most = work_.problem.keys;
  if (!work_.uneven) return static_cast<std::int32_t>(most);
  std::mt19937_64 random(seed_ * 1'000'003 + of_lengths +
                         static_cast<std::uint64_t>(sequence * world_ + rank) * 7919);
  if (random() % 5 == 0) return 0;
  return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(most + 1));
}

void attention_inputs::fill_queries(const matrix& to) const {
  random_matrix{seed_ * 8 + of_queries}.fill(to, {0, to.rows}, {0, to.cols});
}

void attention_inputs::fill_row(std::uint64_t which, int rank, std::int64_t sequence,
                                std::int64_t key, const matrix& to) const {
  const flash_decode_problem& p = work_.problem;
  const std::int64_t row = (rank * p.batch + sequence) * p.keys + key;
  random_matrix{seed_ * 8 + which}.fill(to, {row, 1}, {0, to.cols});
}

void attention_inputs::fill_cache(int rank, const matrix& keys, const matrix& values,
                                  std::vector<std::int32_t>& lengths,
                                  std::vector<std::int32_t>& table) const {
  const flash_decode_problem& p = work_.problem;
  poison(keys);
  poison(values);
  const std::int64_t each = pages_of_sequence(p);
  std::vector<std::int32_t> pages(static_cast<std::size_t>(std::max(p.pages, p.batch * each)));
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(),
               std::mt19937_64(seed_ * 31 + static_cast<std::uint64_t>(rank)));
  table.assign(pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>(p.batch * each));
  lengths.clear();
  for (std::int64_t b = 0; b < p.batch; ++b) {
    lengths.push_back(length(rank, b));
    for (std::int64_t i = 0; i < lengths.back(); ++i) {
      const std::int64_t row =
          p.page_size == 0
              ? b * p.keys + i
              : table[static_cast<std::size_t>(b * each + i / p.page_size)] * p.page_size +
                    i % p.page_size;
      fill_row(of_keys, rank, b, i, row_of(keys, row));
      fill_row(of_values, rank, b, i, row_of(values, row));
    }
  }
}

attention_inputs::reference attention_inputs::result() const {
  const flash_decode_problem& p = work_.problem;
  const std::int64_t group = p.heads / p.kv_heads;
  const std::int64_t width = p.head_dim;
  const float scale = scale_of(p);
  rounded_row key(p.type, p.kv_heads * width);
  rounded_row value(p.type, p.kv_heads * width);
  rounded_row all_queries(p.type, p.batch * p.heads * width);
  matrix q = all_queries.target();
  fill_queries({q.data, q.type, p.batch * p.heads, width});
  const float* const queries = all_queries.widened();

  reference right;
  right.values.reserve(static_cast<std::size_t>(p.batch * p.heads * width));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    std::vector<running_softmax> heads(static_cast<std::size_t>(p.heads), running_softmax(width));
    for (int rank = 0; rank < world_; ++rank) {
      const std::int64_t keys = length(rank, b);
      for (std::int64_t i = 0; i < keys; ++i) {
        fill_row(of_keys, rank, b, i, key.target());
        fill_row(of_values, rank, b, i, value.target());
        const float* const k = key.widened();
        const float* const v = value.widened();
        for (std::int64_t h = 0; h < p.heads; ++h) {
          const float* const query = queries + (b * p.heads + h) * width;
          const std::int64_t at = h / group * width;
          double logit = 0;
          for (std::int64_t j = 0; j < width; ++j)
            logit += static_cast<double>(query[j]) * static_cast<double>(k[at + j]);
          logit *= static_cast<double>(scale);
          const auto cap = static_cast<double>(p.logit_cap);
          if (cap > 0) logit = cap * std::tanh(logit / cap);
          heads[static_cast<std::size_t>(h)].add(logit, v + at);
        }
      }
    }
    for (const running_softmax& head : heads) {
      for (std::int64_t j = 0; j < width; ++j)
        right.values.push_back(head.result(static_cast<std::size_t>(j)));
      right.squares.push_back(head.expected());
    }
  }
  // An error of an element is a sum of roundings of weights and values that are independent of each
  // other, with at most the tolerance as their root mean square, relative to that of the row. The
  // largest of 10^9 such errors is six times as large. Ranks may round their partial results.
  right.tolerance = tolerance_of(p);
  right.share = 6 * right.tolerance + partials_share(p.partials, world_);
  return right;
}

double relative_error(const const_matrix& result, const attention_inputs::reference& right) {
  std::vector<float> found(right.values.size());
  const host::tile_memory tile{
      static_cast<std::byte*>(const_cast<void*>(result.data)),  // NOLINT(*-const-cast)
      result.stride, result.type};
  host::widen(tile, result.rows, result.cols, found.data(), result.cols);
  deviation off(right.tolerance);
  const auto width = static_cast<std::size_t>(result.cols);
  for (std::size_t row = 0; row < right.squares.size(); ++row) {
    off.add_row(std::span<const float>(found).subspan(row * width, width),
                std::span<const double>(right.values).subspan(row * width, width), right.share,
                right.squares[row]);
  }
  return off.relative_error();
}

double tolerance_of(const flash_decode_problem& problem) noexcept {
  const auto of = [](dtype type) {
    return type == dtype::f32 ? 2e-5 : type == dtype::f16 ? 1e-3 : 5e-3;
  };
  return std::max(of(problem.type), of(problem.partials));
}

}  // namespace untax
