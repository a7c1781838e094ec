// One fused operator: every rank holds rows of A and its own weights, and computes all rows of A
// times them while the rows of the others are still on their way.
// docs/tutorials/04-all-gather-gemm.md explains it.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <untax/untax.hpp>

namespace {

using untax::bf16;

constexpr int ranks = 4;
constexpr std::int64_t m = 250;  // rows of A, all ranks together; four ranks do not divide them
constexpr std::int64_t n = 96;   // columns of the result of each rank
constexpr std::int64_t k = 160;
constexpr int epochs = 3;

// Any numbers will do, as long as every rank can tell what the others hold.
float a_at(int epoch, std::int64_t row, std::int64_t col) {
  return static_cast<float>((row * 7 + col * 3 + epoch) % 16 - 8) / 8;
}
float weight_at(int rank, std::int64_t row, std::int64_t col) {
  return static_cast<float>((row * 5 + col * 11 + rank) % 16 - 8) / 8;
}

template <class Value>
void fill(const untax::tile_view<bf16>& tile, const Value& value) {
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    for (std::int64_t col = 0; col < tile.cols; ++col) *tile.at(row, col) = bf16(value(row, col));
  }
}

void multiply(untax::world& world) {
  // Plan once: this is collective, compares the problem among the ranks and allocates everything.
  const untax::all_gather_gemm_problem problem{.m = m, .n = n, .k = k, .type = untax::dtype::bf16};
  untax::operator_options options;
  options.how = untax::pattern::fused_specialized;
  untax::all_gather_gemm op(world, problem, options);
  if (world.rank() == 0) std::printf("%s\n", op.explain().c_str());

  const untax::extent shard = untax::all_gather_gemm::a_shard(problem, world.size(), world.rank());
  const std::int64_t first_row = world.rank() * untax::ceil_div<std::int64_t>(m, world.size());
  std::vector<bf16> a(static_cast<std::size_t>(shard.rows * shard.cols));
  std::vector<bf16> weights(n * k);
  std::vector<bf16> c(m * n);
  fill({weights.data(), n, k},
       [&](auto row, auto col) { return weight_at(world.rank(), row, col); });

  for (int epoch = 1; epoch <= epochs; ++epoch) {
    fill({a.data(), shard.rows, k},
         [&](auto row, auto col) { return a_at(epoch, first_row + row, col); });

    // Run many times: no allocation, no barrier. The operands are ours again when it returns.
    op.run({a.data(), shard.rows, k}, {weights.data(), n, k}, {c.data(), m, n});

    const untax::tile_view<bf16> result(c.data(), m, n);
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t col = 0; col < n; ++col) {
        float sum = 0;
        for (std::int64_t i = 0; i < k; ++i)
          sum += a_at(epoch, row, i) * weight_at(world.rank(), col, i);
        // The inputs are exact in bf16, so only the rounding of the result is left.
        const float difference = std::fabs(static_cast<float>(*result.at(row, col)) - sum);
        if (difference <= std::fabs(sum) / 256) continue;
        throw untax::error(untax::errc::internal, "row " + std::to_string(row) + " is wrong");
      }
    }
  }
  std::printf("rank %d: %d products of %d x %d x %d are right\n", world.rank(), epochs, int{m},
              int{n}, int{k});
}

}  // namespace

int main() {
  try {
    untax::run_threads(ranks, multiply);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
