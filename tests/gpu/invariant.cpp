// With `invariant` rows have the same bits alone and in any batch, in every pattern: so the tensor
// cores add alike in tiles of all widths, and whichever operand A is.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>

#include <untax/world/launch.hpp>

#include "engines/bulk/scratch.hpp"
#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_all_reduce/spec.hpp"
#include "ops/gemm_all_scatter/spec.hpp"
#include "ops/gemm_reduce_scatter/spec.hpp"
#include "tests/batches.hpp"

namespace {

using namespace gpu_test;
using untax::bulk::scratch;
using untax_test::batch;
using untax_test::looked_at;
using untax_test::seen_rows;

/// A matrix in memory of the host, and the same on the GPU.
struct both {
  std::vector<std::byte> bytes;
  scratch memory;
  untax::matrix here;
  untax::matrix there;

  both(untax::dtype type, std::int64_t rows, std::int64_t cols)
      : bytes(static_cast<std::size_t>(rows * cols) * size_of(type)),
        memory(bytes.size()),
        here(bytes.data(), type, rows, cols),
        there(memory.data(), type, rows, cols) {}
  void upload() {
    ok(cudaMemcpy(memory.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    // A copy from pageable memory may return before it ends, and other streams do not wait for it.
    ok(cudaDeviceSynchronize());
  }
};

/// A run of a batch at one rank; how many rows have other bits than before.
int differing(world& w, const operator_entry& entry, const gemm_problem& p,
              const operator_options& options, const batch& rows, seen_rows& seen,
              const stream& s) {
  const auto op = entry.make(w, p, options);
  const untax::gemm_share share = entry.share(p, w.size(), w.rank());
  both a(p.type, share.a_rows.size, share.a_cols.size);
  both b(p.type, share.b_rows.size, share.b_cols.size);
  both c(p.type, share.c_rows.size, share.c_cols.size);
  for (std::int64_t i = 0; i < a.here.rows; ++i) {
    const std::int64_t row = rows[static_cast<std::size_t>(share.a_rows.begin + i)];
    std::byte* const at = a.bytes.data() + static_cast<std::size_t>(i * a.here.stride) * 2;
    untax::random_matrix{1}.fill({at, p.type, 1, a.here.cols}, {row, 1}, share.a_cols);
  }
  untax::random_matrix{2 + share.b_of_rank}.fill(b.here, share.b_rows, share.b_cols);
  a.upload();
  b.upload();
  w.barrier();  // no peer's kernel waits for this rank while it waits for the GPU that they share
  const untax::matrix result = op->result().data != nullptr ? op->result() : c.there;
  op->run(as_const(a.there), as_const(b.there), result, s.get());
  EXPECT_TRUE(s.done());
  // A rank that owns no rows is done before others have launched. Its free waits for the whole GPU,
  // and no rank can launch meanwhile.
  w.barrier();
  w.check();
  ok(cudaMemcpy(c.bytes.data(), result.data, c.bytes.size(), cudaMemcpyDeviceToHost));
  return seen.compare(w.rank(), rows, share.c_rows, c.here);
}

/// Every number of rows in every pattern; rows of few belong to larger ones, too.
void check(const operator_entry& entry, const gemm_problem& most) {
  NEEDS_GPUS(1);
  constexpr std::int64_t numbers[] = {1, 2, 5, 16, 17, 48, 64, 65, 100, 128, 130, 300, 512};
  const std::uint64_t seed = std::random_device{}();
  seen_rows seen;
  seen.expect_one_copy(entry.sums_to.has_value());
  for (const pattern how : untax::all_patterns) {
    untax::run_gpus(
        gpus(),
        [&](world& w) {
          const stream s;
          std::mt19937_64 random(seed);
          for (const std::int64_t rows : numbers) {
            gemm_problem p = most;
            p.m = rows;
            const operator_options options{.how = how, .invariant = true};
            SCOPED_TRACE(
                fmt::format("seed {}, rank {}: {}", seed, w.rank(), text_of(entry, p, options)));
            const batch whole = untax_test::random_batch(random, rows);
            try {
              EXPECT_EQ(differing(w, entry, p, options, whole, seen, s), 0);
            } catch (const untax::error& e) {
              if (e.code() != untax::errc::unsupported) throw;
              if (w.rank() == 0) std::cout << "left out: " << e.what() << "\n";
              return;
            }
          }
        },
        roomy_world());
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GE(seen.compared(), looked_at);
}

gemm_problem problem_of(gather_axis gather) {
  return {.m = 1, .n = 520, .k = 1032, .type = untax::dtype::bf16, .gather = gather};
}

TEST(gpu_invariant, of_all_gather_gemm) {
  for (const gather_axis axis : {gather_axis::rows, gather_axis::k})
    check(untax::all_gather_gemm_entry(), problem_of(axis));
}
TEST(gpu_invariant, of_gemm_all_scatter) {
  check(untax::gemm_all_scatter_entry(), problem_of(gather_axis::rows));
}
TEST(gpu_invariant, of_gemm_reduce_scatter) {
  check(untax::gemm_reduce_scatter_entry(), problem_of(gather_axis::rows));
}
TEST(gpu_invariant, of_gemm_all_reduce) {
  check(untax::gemm_all_reduce_entry(), problem_of(gather_axis::rows));
}

}  // namespace
