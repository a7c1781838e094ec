#include "engines/host/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <untax/core/half.hpp>

#include "engines/host/openblas.hpp"
#include "engines/host/tile_math.hpp"

namespace untax::host {
namespace {

/// Keys of a block. Their rows, widened to fp32, fit into the L2 cache.
constexpr std::int64_t keys_at_once = 128;
constexpr float log2_of_e = 1.44269504088896340736F;
constexpr float nothing = -std::numeric_limits<float>::infinity();

std::size_t count(std::int64_t rows, std::int64_t cols) {
  return static_cast<std::size_t>(rows * cols);
}

tile_memory moved(const tile_memory& tile, std::int64_t row, std::int64_t col) {
  const auto size = static_cast<std::int64_t>(size_of(tile.type));
  return {tile.data + (row * tile.stride + col) * size, tile.stride, tile.type};
}

float rounded(dtype type, float value) {
  switch (type) {
    case dtype::f16:
      return static_cast<float>(f16(value));
    case dtype::bf16:
      return static_cast<float>(bf16(value));
    default:
      return value;
  }
}

/// Stores most + log2(total) as two numbers of `type` that add up to it.
void split_statistics(dtype type, float most, float total, float* to) {
  if (most == nothing) {
    to[0] = nothing;
    to[1] = 0;
  } else if (type == dtype::f32) {
    to[0] = most;
    to[1] = std::log2(total);
  } else {
    const float whole = most + std::log2(total);
    to[0] = rounded(type, whole);
    to[1] = whole - to[0];
  }
}

}  // namespace

void attention_math::attend(const step& s, const attention_cache& cache, const tile_memory& queries,
                            const tile_memory& to) {
  queries_.resize(count(s.rows, s.cols));
  widen(queries, s.rows, s.cols, queries_.data(), s.cols);
  most_.assign(count(s.rows, 1), nothing);
  total_.assign(count(s.rows, 1), 0);
  sum_.assign(count(s.rows, s.cols), 0);
  const std::int64_t sequence = s.weights.row / cache.kv_heads;
  const sharding splits{cache.lengths[sequence], static_cast<int>(s.depth)};
  const pieces blocks{splits.of(static_cast<int>(s.weights.col)), keys_at_once};
  for (int i = 0; i < blocks.count(); ++i) take_block(s, cache, blocks.at(i));

  line_.resize(count(1, s.cols + attention_statistics));
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const float part = total_[at] > 0 ? 1 / total_[at] : 0;
    for (std::int64_t j = 0; j < s.cols; ++j)
      line_[static_cast<std::size_t>(j)] = sum_[static_cast<std::size_t>(row * s.cols + j)] * part;
    split_statistics(to.type, most_[at], total_[at], line_.data() + s.cols);
    narrow(line_.data(), 0, 1, s.cols + attention_statistics, moved(to, row, 0));
  }
}

void attention_math::gather(const attention_cache& cache, const tile_memory& from, const step& s,
                            range keys, std::vector<float>& to) {
  to.resize(count(keys.size, s.cols));
  const std::int64_t sequence = s.weights.row / cache.kv_heads;
  const std::int64_t head = s.weights.row % cache.kv_heads;
  for (std::int64_t i = 0; i < keys.size; ++i) {
    const std::int64_t row = cache.row_of(sequence, keys.begin + i);
    widen(moved(from, row, head * s.cols), 1, s.cols, to.data() + i * s.cols, s.cols);
  }
}

void attention_math::take_block(const step& s, const attention_cache& cache, range keys) {
  const std::int64_t n = keys.size;
  gather(cache, cache.keys, s, keys, block_);
  logits_.resize(count(s.rows, n));
  multiply_fp32(s.rows, n, s.cols, queries_.data(), s.cols, block_.data(), s.cols, false,
                logits_.data(), n);
  const bool capped = cache.logit_cap > 0;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    float* const logits = logits_.data() + row * n;
    for (std::int64_t i = 0; i < n; ++i) {
      const float logit = logits[i] * cache.scale;
      logits[i] =
          log2_of_e * (capped ? cache.logit_cap * std::tanh(logit / cache.logit_cap) : logit);
    }
    float& most = most_[static_cast<std::size_t>(row)];
    float& total = total_[static_cast<std::size_t>(row)];
    const float before = most;
    most = std::max(before, *std::max_element(logits, logits + n));
    const float kept = before == nothing ? 0 : std::exp2(before - most);
    total *= kept;
    for (std::int64_t i = 0; i < n; ++i) {
      logits[i] = std::exp2(logits[i] - most);
      total += logits[i];
    }
    float* const sum = sum_.data() + row * s.cols;
    for (std::int64_t j = 0; j < s.cols; ++j) sum[j] *= kept;
  }
  gather(cache, cache.values, s, keys, block_);
  blas().sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(s.rows),
               static_cast<blasint>(s.cols), static_cast<blasint>(n), 1.0F, logits_.data(),
               static_cast<blasint>(n), block_.data(), static_cast<blasint>(s.cols), 1.0F,
               sum_.data(), static_cast<blasint>(s.cols));
}

void attention_math::merge(const step& s, const tile_memory& from, const tile_memory& to) {
  const bool last = s.to.of == operand::c;
  const std::int64_t width = s.cols + attention_statistics;
  line_.resize(count(1, width));
  block_.resize(count(s.depth, width));
  for (std::int64_t row = 0; row < s.rows; ++row) {
    float most = nothing;
    for (std::int64_t i = 0; i < s.depth; ++i) {
      float* const part = block_.data() + i * width;
      widen(moved(from, i * s.rows + row, 0), 1, width, part, width);
      most = std::max(most, part[s.cols] + part[s.cols + 1]);
    }
    std::fill(line_.begin(), line_.end(), 0.0F);
    float total = 0;
    for (std::int64_t i = 0; i < s.depth && most != nothing; ++i) {
      const float* const part = block_.data() + i * width;
      const float weight = std::exp2(part[s.cols] - most + part[s.cols + 1]);
      total += weight;
      for (std::int64_t j = 0; j < s.cols; ++j)
        line_[static_cast<std::size_t>(j)] += weight * part[j];
    }
    for (std::int64_t j = 0; j < s.cols && total > 0; ++j)
      line_[static_cast<std::size_t>(j)] /= total;
    if (!last) split_statistics(to.type, most, total, line_.data() + s.cols);
    narrow(line_.data(), 0, 1, last ? s.cols : width, moved(to, row, 0));
  }
}

}  // namespace untax::host
