// The comparison of matrices on a GPU, which the checks of operators go by, sees one wrong word of
// 16 bytes in a result of millions of elements, and what is no number.
#include <cstdint>
#include <limits>
#include <vector>

#include <untax/core/half.hpp>

#include "engines/gpu/matrix/matrix.hpp"
#include "gpus.hpp"
#include "ops/common/deviation.hpp"
#include "rows_of_heads.hpp"

namespace {

using namespace gpu_test;
using untax::bf16;
using untax::dtype;
using untax::matrix;

constexpr double tolerance = 4e-3;
constexpr std::int64_t size = 4096;

class compared_matrices {
 public:
  compared_matrices() : right_(size * size), found_(size * size), scratch_(64) {
    untax::gpu::fill_normal(should(), 1, {0, size}, {0, size}, on_.get());
    untax::gpu::round_to(is(), as_const(should()), on_.get());
  }

  [[nodiscard]] double error() {
    untax::deviation off(tolerance);
    off.add(untax::gpu::compare(as_const(is()), as_const(should()), tolerance, 1, scratch_.data(),
                                on_.get()),
            static_cast<double>(size * size), 1);
    return off.relative_error();
  }
  /// Sets an element of the result, or of the reference.
  void put(std::int64_t at, float value) {
    const bf16 narrow(value);
    copy(found_.data() + at, &narrow, 1, on_);
  }
  void put_right(std::int64_t at, float value) { copy(right_.data() + at, &value, 1, on_); }
  [[nodiscard]] float get(std::int64_t at) {
    return static_cast<float>(values(found_.data() + at, 1, on_)[0]);
  }

 private:
  [[nodiscard]] matrix should() const { return {right_.data(), dtype::f32, size, size}; }
  [[nodiscard]] matrix is() const { return {found_.data(), dtype::bf16, size, size}; }

  stream on_;
  on_device<float> right_;
  on_device<bf16> found_;
  on_device<std::uint64_t> scratch_;
};

TEST(gpu_compare, sees_a_wrong_word_and_nan) {
  NEEDS_GPUS(1);
  compared_matrices m;
  EXPECT_LE(m.error(), tolerance);
  EXPECT_GT(m.error(), 0);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t at : {std::int64_t{0}, size * size / 2, size * size - 8}) {
    std::vector<float> kept;
    for (int i = 0; i < 8; ++i) {
      kept.push_back(m.get(at + i));
      m.put(at + i, m.get((at + i + size * 7 + 64) % (size * size)));
    }
    EXPECT_GT(m.error(), tolerance) << at;
    for (int i = 0; i < 8; ++i) m.put(at + i, kept[static_cast<std::size_t>(i)]);
    EXPECT_LE(m.error(), tolerance) << at;
    for (const float broken : {nan, infinity, -infinity}) {
      m.put(at, broken);
      EXPECT_EQ(m.error(), std::numeric_limits<double>::infinity()) << broken;
    }
    m.put(at, kept[0]);
  }
  m.put_right(5, infinity);
  EXPECT_EQ(m.error(), std::numeric_limits<double>::infinity());
  m.put(5, infinity);
  EXPECT_LE(m.error(), tolerance);
  m.put_right(6, nan);
  EXPECT_GT(m.error(), tolerance);
  m.put(6, nan);
  EXPECT_LE(m.error(), tolerance);
}

}  // namespace
