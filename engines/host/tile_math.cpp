#include "engines/host/tile_math.hpp"

#include <algorithm>
#include <limits>

#include "engines/host/combine.hpp"
#include "engines/host/openblas.hpp"
#include "engines/host/ordered_product.hpp"
#include "engines/host/race_marks.hpp"

namespace untax::host {
namespace {

constexpr std::int64_t floats_kept = std::int64_t{4} << 20;
constexpr std::int64_t least_columns = 64;

/// The number of columns of weights that are widened together: they fit a cache, for any tile
/// width.
std::int64_t columns_at_once(dtype type, std::int64_t depth) {
  if (type == dtype::f32) return std::numeric_limits<std::int64_t>::max() / 2;
  const std::int64_t fit = floats_kept / std::max<std::int64_t>(depth, 1);
  return std::max(fit / least_columns * least_columns, least_columns);
}

float* floats(std::byte* data) {
  return reinterpret_cast<float*>(data);
}  // NOLINT(*-reinterpret-cast)

}  // namespace

void multiply_fp32(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                   const float* b, std::int64_t ldb, bool accumulate, float* c, std::int64_t ldc) {
  if (k == 0) {
    if (accumulate) return;
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, 0.0F);
    return;
  }
  const auto narrow_int = [](std::int64_t value) { return static_cast<blasint>(value); };
  blas().sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, narrow_int(m), narrow_int(n), narrow_int(k),
               1.0F, a, narrow_int(lda), b, narrow_int(ldb), accumulate ? 1.0F : 0.0F, c,
               narrow_int(ldc));
}

void math_need::add(const step& s, const operand_table& types) {
  const auto is_narrow = [&](operand role) {
    return role != operand::panel && role != operand::product && types[role].type != dtype::f32;
  };
  if (s.what == action::add) sum = true;
  if (s.what == action::reduce) addends = std::max(addends, s.depth);
  if (s.what == action::copy && s.to.of == operand::panel)
    panel = std::max({panel, s.cols, std::int64_t{1}});
  if (s.what == action::normalise) hidden = std::max(hidden, s.cols);
  if (s.what != action::multiply) return;
  if (is_narrow(s.from.of)) left = std::max(left, s.depth);
  if (is_narrow(operand::b)) right = std::max(right, s.depth);
  if (s.to.of == operand::product || is_narrow(s.to.of)) product = true;
}

void tile_math::reserve(const math_need& need) {
  const auto take = [](std::vector<float>& values, std::int64_t rows, std::int64_t cols) {
    values.reserve(static_cast<std::size_t>(rows * cols));
  };
  if (need.product) scratch(operand::product);
  if (need.sum) scratch(operand::sum);
  take(panel_, tile_.rows, need.panel);
  take(left_.values, tile_.rows, need.left);
  const std::int64_t most = std::max(floats_kept, least_columns * need.right);
  take(right_.values, 1, std::min(tile_.cols * need.right, most));
  addends_.reserve(static_cast<std::size_t>(need.addends));
  norm_.reserve(need.hidden);
}

void tile_math::perform(const step& s, const operand_table& operands) {
  switch (s.what) {
    case action::none:
      return;
    case action::copy:
      if (s.to.of == operand::panel) return load_panel(s, operands);
      return copy_tile(resolve(s.from, operands), s.rows, s.cols, resolve(s.to, operands));
    case action::multiply:
      return multiply(s, operands);
    case action::add:
      return add(s, operands);
    case action::store:
      return narrow(floats(resolve(s.from, operands).data), tile_.cols, s.rows, s.cols,
                    resolve(s.to, operands));
    case action::reduce:
      return reduce(s, operands);
    case action::attend:
      return attention_.attend(s, *operands.cache, resolve(s.from, operands),
                               resolve(s.to, operands));
    case action::merge:
      return attention_.merge(s, resolve(s.from, operands), resolve(s.to, operands));
    case action::normalise:
      return norm_.normalise(s, floats(resolve(s.from, operands).data), tile_.cols, operands);
  }
}

void tile_math::add(const step& s, const operand_table& operands) {
  const tile_memory from = resolve(s.from, operands);
  // Partial results of peers were rounded to the type of the inbox. This rank's own is rounded in
  // the same way, so that every rank adds the same numbers.
  if (s.from.of == operand::product)
    round_to(operands[operand::inbox].type, floats(from.data), from.stride, s.rows, s.cols);
  accumulate(from, s.rows, s.cols, s.first, scratch(operand::sum).data(), tile_.cols);
}

void tile_math::reduce(const step& s, const operand_table& operands) {
  addends_.clear();
  for (std::int64_t i = 0; i < s.depth; ++i) addends_.push_back(resolve(addend(s, i), operands));
  const tile_memory result = resolve(s.to, operands);
  combine(s.combine, addends_, s.rows, s.cols, result);
  if (!s.everywhere) return;
  for (int i = 0; i < s.depth; ++i) {
    if (i != s.to.rank) copy_tile(result, s.rows, s.cols, resolve(target(s, i), operands));
  }
}

void tile_math::multiply(const step& s, const operand_table& operands) {
  const float_tile a = s.from.of == operand::panel
                           ? float_tile{panel_.data() + s.from.row * panel_stride_, panel_stride_}
                           : as_floats(resolve(s.from, operands), s.rows, s.depth, left_);
  const std::int64_t most = columns_at_once(operands[operand::b].type, s.depth);
  for (std::int64_t begin = 0; begin < s.cols; begin += most) {
    step block = s;
    block.cols = std::min(most, s.cols - begin);
    block.weights.row += begin;
    block.to.col += begin;
    multiply_columns(block, a, begin, operands);
  }
}

void tile_math::multiply_columns(const step& s, const float_tile& a, std::int64_t begin,
                                 const operand_table& operands) {
  const float_tile b = as_floats(resolve(s.weights, operands), s.cols, s.depth, right_);
  const tile_memory to = resolve(s.to, operands);
  if (to.type == dtype::f32) {
    multiply_floats(s, a, b, floats(to.data), to.stride);
    mark_write(to, s.rows, s.cols);
    return;
  }
  float* product = scratch(operand::product).data() + begin;
  multiply_floats(s, a, b, product, tile_.cols);
  if (s.last) narrow(product, tile_.cols, s.rows, s.cols, to);
}

void tile_math::multiply_floats(const step& s, const float_tile& a, const float_tile& b, float* c,
                                std::int64_t ldc) const {
  const auto multiply = in_order_ ? multiply_in_order : multiply_fp32;
  multiply(s.rows, s.cols, s.depth, a.data, a.stride, b.data, b.stride, !s.first, c, ldc);
}

void tile_math::load_panel(const step& s, const operand_table& operands) {
  panel_stride_ = std::max<std::int64_t>(s.cols, 1);
  const auto end = static_cast<std::size_t>((s.to.row + s.rows) * panel_stride_);
  if (panel_.size() < end) panel_.resize(end);
  widen(resolve(s.from, operands), s.rows, s.cols, panel_.data() + s.to.row * panel_stride_,
        panel_stride_);
}

tile_math::float_tile tile_math::as_floats(const tile_memory& tile, std::int64_t rows,
                                           std::int64_t cols, widened& keep) {
  if (tile.type == dtype::f32) {
    mark_read(tile, rows, cols);
    return {floats(tile.data), tile.stride};
  }
  if (keep.key.data != tile.data || keep.rows != rows || keep.cols != cols) {
    keep.values.resize(std::max(keep.values.size(), static_cast<std::size_t>(rows * cols)));
    widen(tile, rows, cols, keep.values.data(), cols);
    keep.key = tile;
    keep.rows = rows;
    keep.cols = cols;
  }
  return {keep.values.data(), std::max<std::int64_t>(cols, 1)};
}

tile_memory tile_math::resolve(const place& p, const operand_table& operands) {
  if (p.of == operand::product || p.of == operand::sum) {
    float* corner = scratch(p.of).data() + p.row * tile_.cols + p.col;
    return {reinterpret_cast<std::byte*>(corner), tile_.cols,
            dtype::f32};  // NOLINT(*-reinterpret-cast)
  }
  const operand_memory& memory = operands[p.of];
  return {memory.at(p), memory.stride, memory.type};
}

std::vector<float>& tile_math::scratch(operand role) {
  std::vector<float>& tile = role == operand::product ? product_ : sum_;
  if (tile.empty()) tile.resize(static_cast<std::size_t>(tile_.rows * tile_.cols));
  return tile;
}

}  // namespace untax::host
