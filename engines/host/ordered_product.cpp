#include "engines/host/ordered_product.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

// Compiled with -ffp-contract=off: a fused multiply-add would round once, instead of rounding the
// product and the sum.

namespace untax::host {
namespace {

constexpr std::int64_t lanes = 8;
constexpr std::int64_t width = 2 * lanes;  // columns of a strip
constexpr std::int64_t depth = 256;        // columns of B in a strip: 16 KiB, which fit into L1

/// A SIMD vector of floats.
using floats [[gnu::vector_size(lanes * sizeof(float))]] = float;

// The vector is returned by reference: the calling convention for vectors depends on the processor
// that a function is compiled for.
[[gnu::always_inline]] inline void load(const float* from, floats& to) {
  std::memcpy(&to, from, sizeof to);
}
[[gnu::always_inline]] inline void store(const floats& from, float* to) {
  std::memcpy(to, &from, sizeof from);
}

/// Rows of B, transposed, padded with rows of zeros: element (i, j) is column i of row j.
using strip = std::array<float, static_cast<std::size_t>(width* depth)>;

void pack(const float* b, std::int64_t ldb, std::int64_t rows, std::int64_t k, strip& to) {
  for (std::int64_t i = 0; i < k; ++i) {
    float* const sums = to.data() + i * width;
    for (std::int64_t j = 0; j < width; ++j) sums[j] = j < rows ? b[j * ldb + i] : 0.0F;
  }
}

/// Adds products to rows of sums, which lie `width` apart. Each row has registers of its own.
template <int... row>
[[gnu::always_inline]] inline void add_products(std::integer_sequence<int, row...> /*rows*/,
                                                const float* a, std::int64_t lda, const strip& b,
                                                std::int64_t k, float* sums) {
  floats left[sizeof...(row)];
  floats right[sizeof...(row)];
  ((load(sums + row * width, left[row]), load(sums + row * width + lanes, right[row])), ...);
  for (std::int64_t i = 0; i < k; ++i) {
    floats w;
    floats v;
    load(b.data() + i * width, w);
    load(b.data() + i * width + lanes, v);
    ((left[row] += w * a[row * lda + i], right[row] += v * a[row * lda + i]), ...);
  }
  ((store(left[row], sums + row * width), store(right[row], sums + row * width + lanes)), ...);
}

using adder = void (*)(const float* a, std::int64_t lda, const strip& b, std::int64_t k,
                       float* sums);

/// The function for several rows, which reads B once for all of them, and the function for one row.
struct adders {
  int rows;
  adder several;
  adder one;
};

template <int rows>
void add_usual(const float* a, std::int64_t lda, const strip& b, std::int64_t k, float* sums) {
  add_products(std::make_integer_sequence<int, rows>(), a, lda, b, k, sums);
}

#if defined(__x86_64__)
template <int rows>
[[gnu::target("avx2")]] void add_wide(const float* a, std::int64_t lda, const strip& b,
                                      std::int64_t k, float* sums) {
  add_products(std::make_integer_sequence<int, rows>(), a, lda, b, k, sums);
}
#endif

/// The functions for this processor. `several` takes as many rows as the registers hold.
adders adders_here() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return {4, add_wide<4>, add_wide<1>};
#endif
  return {2, add_usual<2>, add_usual<1>};
}

}  // namespace

void multiply_in_order(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                       std::int64_t lda, const float* b, std::int64_t ldb, bool accumulate,
                       float* c, std::int64_t ldc) {
  static const adders add = adders_here();
  constexpr std::int64_t most_rows = 4;
  strip packed{};
  std::array<float, static_cast<std::size_t>(most_rows * width)> sums{};
  for (std::int64_t col = 0; col < n; col += width) {
    const std::int64_t cols = std::min(width, n - col);
    const std::size_t bytes = static_cast<std::size_t>(cols) * sizeof(float);
    std::int64_t done = 0;
    do {
      const std::int64_t part = std::min(depth, k - done);
      pack(b + col * ldb + done, ldb, cols, part, packed);
      for (std::int64_t row = 0; row < m;) {
        const std::int64_t rows = m - row >= add.rows ? add.rows : 1;
        float* const to = c + row * ldc + col;
        sums.fill(0);
        if (accumulate || done > 0) {
          for (std::int64_t i = 0; i < rows; ++i)
            std::memcpy(sums.data() + i * width, to + i * ldc, bytes);
        }
        (rows > 1 ? add.several : add.one)(a + row * lda + done, lda, packed, part, sums.data());
        for (std::int64_t i = 0; i < rows; ++i)
          std::memcpy(to + i * ldc, sums.data() + i * width, bytes);
        row += rows;
      }
      done += part;
    } while (done < k);
  }
}

}  // namespace untax::host
