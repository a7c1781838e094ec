#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <span>

#include <fmt/format.h>

#include <untax/world/launch.hpp>

#include "engines/bulk/scratch.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/common/device_reference.hpp"
#include "ops/common/gemm_inputs.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace gpu_test {

/// Inputs of some rows of one rank, and what comes out of them.
class row_inputs {
 public:
  row_inputs(world& w, const operator_entry& entry, const gemm_problem& p,
             const untax::matrix& result, std::uint64_t seed, const stream& s)
      : problem_(p),
        share_(entry.share(p, w.size(), w.rank())),
        tolerance_(tolerance_of(entry, p)),
        right_(entry, p, w.size(), w.rank()),
        a_(own(a_memory_, share_.a_rows, share_.a_cols)),
        b_(own(b_memory_, share_.b_rows, share_.b_cols)),
        c_(result) {
    if (c_.data == nullptr) {
      c_ = own(c_memory_, share_.c_rows, share_.c_cols);
    } else {
      c_.rows = p.m;
    }
    untax::fill_device_inputs(share_, seed, a_, b_, s.get());
    right_.compute(seed, s.get());
    EXPECT_TRUE(s.done());
  }

  void launch(untax::runnable& op, const stream& s) const {
    untax::gpu::fill_nan(c_.data, c_.span_bytes(), s.get());
    run(op, s);
  }
  void run(untax::runnable& op, const stream& s) const {
    op.run(as_const(a_), as_const(b_), c_, s.get());
  }
  /// Where the operator writes.
  [[nodiscard]] const untax::matrix& result() const { return c_; }
  void expect_right(const stream& s) const {
    EXPECT_LE(right_.error_of(as_const(c_), s.get()), tolerance_) << problem_.m << " rows";
  }

 private:
  untax::matrix own(untax::bulk::scratch& memory, untax::range rows, untax::range cols) const {
    memory = untax::bulk::scratch(static_cast<std::size_t>(rows.size * cols.size) *
                                  size_of(problem_.type));
    return {memory.data(), problem_.type, rows.size, cols.size};
  }

  gemm_problem problem_;
  untax::gemm_share share_;
  double tolerance_;
  untax::device_reference right_;
  untax::bulk::scratch a_memory_;
  untax::bulk::scratch b_memory_;
  untax::bulk::scratch c_memory_;
  untax::matrix a_;
  untax::matrix b_;
  untax::matrix c_;
};

/// Calls `check(world, operator, inputs of some numbers of rows, random numbers that all ranks have
/// alike, stream)` at every rank, for each of these patterns that there is. `rows(random)` gives
/// these numbers.
template <class Rows, class Check>
void each_pattern(std::span<const untax::pattern> patterns, const operator_entry& entry,
                  const gemm_problem& most, const Rows& rows, const Check& check) {
  const std::uint64_t seed = std::random_device{}();
  for (const pattern how : patterns) {
    untax::run_gpus(
        gpus(),
        [&](world& w) {
          const operator_options options{.how = how, .varying_rows = true};
          SCOPED_TRACE(
              fmt::format("seed {}, rank {}: {}", seed, w.rank(), text_of(entry, most, options)));
          const stream s;
          std::unique_ptr<untax::runnable> op;
          try {
            op = entry.make(w, most, options);
          } catch (const untax::error& e) {
            if (e.code() != untax::errc::unsupported) throw;
            if (w.rank() == 0) std::cout << "left out: " << e.what() << "\n";
            return;
          }
          std::mt19937_64 random(seed);
          std::deque<row_inputs> inputs;
          for (const std::int64_t m : rows(random)) {
            gemm_problem p = most;
            p.m = m;
            inputs.emplace_back(w, entry, p, op->result(), random(), s);
          }
          w.barrier();
          check(w, *op, inputs, random, s);
          w.barrier();
        },
        roomy_world());
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace gpu_test
