#include "engines/host/ordered_product.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace untax {
namespace {

struct product_shape {
  std::int64_t m, n, k;
};

std::vector<float> numbers(std::int64_t count, std::mt19937_64& random) {
  std::normal_distribution<float> drawn;
  std::vector<float> all(static_cast<std::size_t>(count));
  for (float& value : all) value = drawn(random);
  return all;
}

/// Element by element, as the header says, where rows lie apart and k takes several turns.
TEST(ordered_product, adds_in_order_in_any_shape) {
  std::mt19937_64 random(17);
  constexpr product_shape shapes[] = {{1, 1, 1},    {3, 17, 256}, {4, 16, 257}, {5, 33, 600},
                                      {9, 40, 513}, {2, 31, 64},  {6, 48, 0}};
  for (const auto& [m, n, k] : shapes) {
    for (const bool accumulate : {false, true}) {
      const std::int64_t lda = k + 3, ldb = k + 1, ldc = n + 2;
      const std::vector<float> a = numbers(m * lda, random);
      const std::vector<float> b = numbers(n * ldb, random);
      std::vector<float> c = numbers(m * ldc, random);
      std::vector<float> right = c;
      for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t col = 0; col < n; ++col) {
          float& sum = right[static_cast<std::size_t>(row * ldc + col)];
          if (!accumulate) sum = 0;
          for (std::int64_t i = 0; i < k; ++i) {
            // Rounded by itself.
            const volatile float product = a[static_cast<std::size_t>(row * lda + i)] *
                                           b[static_cast<std::size_t>(col * ldb + i)];
            sum += product;
          }
        }
      }
      host::multiply_in_order(m, n, k, a.data(), lda, b.data(), ldb, accumulate, c.data(), ldc);
      EXPECT_EQ(c, right) << m << " x " << n << " x " << k << ", accumulate " << accumulate;
    }
  }
}

}  // namespace
}  // namespace untax
