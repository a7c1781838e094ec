// Views know the element types that matrices have, and refuse others when they are compiled.
#include <concepts>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/array_view.hpp>
#include <untax/core/matrix.hpp>

namespace untax {
namespace {

template <class T>
constexpr bool viewed = std::constructible_from<matrix, T*, std::int64_t, std::int64_t>&&
    std::constructible_from<const_matrix, const T*, std::int64_t, std::int64_t>&&
        std::constructible_from<array_view, T*, std::int64_t>&&
            std::constructible_from<const_array_view, const std::vector<T>&>;
template <class T>
constexpr bool refused = !std::constructible_from<matrix, T*, std::int64_t, std::int64_t> &&
                         !std::constructible_from<array_view, T*, std::int64_t> &&
                         !std::constructible_from<const_array_view, const std::vector<T>&>;

static_assert(viewed<float> && viewed<f16> && viewed<bf16>);
static_assert(refused<double> && refused<std::int32_t> && refused<std::uint16_t>);
static_assert(!std::constructible_from<array_view, const std::vector<float>&>);

TEST(views, take_the_type_of_their_elements) {
  std::vector<float> floats(6);
  std::vector<f16> halves(6);
  std::vector<bf16> others(6);
  EXPECT_EQ(matrix(floats.data(), 2, 3).type, dtype::f32);
  EXPECT_EQ(const_matrix(halves.data(), 2, 3).type, dtype::f16);
  EXPECT_EQ(array_view(others).type, dtype::bf16);
  EXPECT_EQ(const_array_view(halves).size_bytes(), 12U);
  EXPECT_EQ(matrix(static_cast<void*>(others.data()), dtype::bf16, 2, 3).span_bytes(), 12U);
}

}  // namespace
}  // namespace untax
