// The example of README.md, which quotes this file.
#include <cstdio>
#include <vector>

#include <untax/untax.hpp>

int main() {
  constexpr int ranks = 4, m = 512, n = 256, k = 1024;
  untax::run_threads(ranks, [](untax::world& world) {
    // Planned once, by all ranks together.
    untax::all_gather_gemm op(world, {.m = m, .n = n, .k = k, .type = untax::dtype::f32});

    std::vector<float> a(m / ranks * k, 1.0F);  // this rank's rows of A
    std::vector<float> weights(n * k, 0.5F);    // its own weights, [n, k]
    std::vector<float> c(m * n);                // its result: all rows of A times its weights

    // Run many times. Rows of A travel while tiles that do not need them are multiplied.
    op.run({a.data(), m / ranks, k}, {weights.data(), n, k}, {c.data(), m, n});
    std::printf("rank %d: c[0] is %g\n", world.rank(), c[0]);
  });
}
