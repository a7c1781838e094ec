#include "engines/host/combine.hpp"

#include <type_traits>

#include <untax/core/half.hpp>

namespace untax::host {
namespace {

/// The number of elements that are combined at a time. It is a constant, so that compilers
/// vectorise the loops, and small, so that the sums stay in the L1 cache.
constexpr std::int64_t block = 512;

template <class T>
T* elements(const tile_memory& tile, std::int64_t row, std::int64_t col) {
  return reinterpret_cast<T*>(tile.data) + row * tile.stride + col;  // NOLINT(*-reinterpret-cast)
}

template <class T, reduction how>
struct row_of_blocks {
  std::span<const tile_memory> addends;
  const tile_memory& to;
  std::int64_t row = 0;

  /// `size` is a run-time number or a compile-time constant.
  template <class Size>
  void combine_at(std::int64_t col, Size size) const {
    float so_far[block];
    const T* first = elements<const T>(addends.front(), row, col);
    for (std::int64_t j = 0; j < size; ++j) so_far[j] = static_cast<float>(first[j]);
    for (const tile_memory& addend : addends.subspan(1)) {
      const T* next = elements<const T>(addend, row, col);
      for (std::int64_t j = 0; j < size; ++j)
        so_far[j] = combined(how, so_far[j], static_cast<float>(next[j]));
    }
    T* out = elements<T>(to, row, col);
    for (std::int64_t j = 0; j < size; ++j) out[j] = static_cast<T>(so_far[j]);
  }
};

template <class T, reduction how>
void combine_all(std::span<const tile_memory> addends, std::int64_t rows, std::int64_t cols,
                 const tile_memory& to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const row_of_blocks<T, how> blocks{addends, to, row};
    std::int64_t col = 0;
    for (; col + block <= cols; col += block)
      blocks.combine_at(col, std::integral_constant<std::int64_t, block>{});
    if (col < cols) blocks.combine_at(col, cols - col);
  }
}

template <class T>
void combine_as(reduction how, std::span<const tile_memory> addends, std::int64_t rows,
                std::int64_t cols, const tile_memory& to) {
  switch (how) {
    case reduction::sum:
      return combine_all<T, reduction::sum>(addends, rows, cols, to);
    case reduction::max:
      return combine_all<T, reduction::max>(addends, rows, cols, to);
    case reduction::min:
      return combine_all<T, reduction::min>(addends, rows, cols, to);
  }
}

}  // namespace

void combine(reduction how, std::span<const tile_memory> addends, std::int64_t rows,
             std::int64_t cols, const tile_memory& to) {
  switch (to.type) {
    case dtype::f32:
      return combine_as<float>(how, addends, rows, cols, to);
    case dtype::f16:
      return combine_as<f16>(how, addends, rows, cols, to);
    case dtype::bf16:
      return combine_as<bf16>(how, addends, rows, cols, to);
  }
}

}  // namespace untax::host
