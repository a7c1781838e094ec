// Collectives on GPUs that were planned for any count: random ones one after the other, through
// rooms, packets and directly, with poisoned results.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/collectives.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "operator_runs.hpp"
#include "tests/plans/known_collectives.hpp"

namespace {

using namespace gpu_test;
using untax::collective_options;
using untax::wire_kind;
using untax::testing::known;
using untax::testing::number;
using untax::testing::problem_of;
using untax::testing::view;

template <class Op>
class any_count {
 public:
  any_count(world& w, std::int64_t capacity, const collective_options& options)
      : w_(w),
        op_(w, problem(capacity), options),
        in_(w.allocate<float>(static_cast<std::size_t>(capacity * w.size()), "in")),
        out_(w.allocate<float>(static_cast<std::size_t>(capacity * w.size()), "out")) {}

  void run(std::int64_t count, std::uint64_t run, const stream& s) {
    const view v{count, w_.size(), w_.rank(), run};
    const auto given = static_cast<std::size_t>(known<Op>::in(v));
    const auto wanted = static_cast<std::size_t>(known<Op>::out(v));
    std::vector<float> input;
    for (std::size_t i = 0; i < given; ++i)
      input.push_back(number(run, w_.rank(), static_cast<std::int64_t>(i)));
    ok(cudaMemcpyAsync(in_.local(), input.data(), given * sizeof(float), cudaMemcpyHostToDevice,
                       s.get()));
    ok(cudaMemsetAsync(out_.local(), 0xff, wanted * sizeof(float), s.get()));
    ok(cudaStreamSynchronize(s.get()));
    w_.barrier();
    op_.run({in_.local(), dtype::f32, known<Op>::in(v)},
            {out_.local(), dtype::f32, known<Op>::out(v)}, s.get());
    ASSERT_TRUE(s.done());
    w_.check();
    const std::vector<float> result = values(out_.local(), wanted, s);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wanted; ++i)
      wrong += result[i] == known<Op>::result(v, static_cast<std::int64_t>(i)) ? 0 : 1;
    EXPECT_EQ(wrong, 0U) << "rank " << w_.rank() << ", run " << run << " of " << count;
    w_.barrier();
  }
  [[nodiscard]] const std::string& text() const { return op_.explain(); }

 private:
  static problem_of<Op> problem(std::int64_t capacity) {
    problem_of<Op> p;
    p.count = capacity;
    p.type = dtype::f32;
    return p;
  }

  world& w_;
  Op op_;
  untax::symmetric<float> in_;
  untax::symmetric<float> out_;
};

template <class Op>
class gpu_capacity_of_collectives : public ::testing::Test {};
using all_collectives = ::testing::Types<untax::all_gather, untax::reduce_scatter,
                                         untax::all_reduce, untax::all_to_all, untax::broadcast>;
TYPED_TEST_SUITE(gpu_capacity_of_collectives, all_collectives);

TYPED_TEST(gpu_capacity_of_collectives, takes_any_count) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  const auto runs_of_each = static_cast<std::uint64_t>(runs(24));
  struct way {
    wire_kind wire;
    bool direct;
    std::int64_t capacity;
  };
  constexpr way ways[] = {
      {wire_kind::automatic, false, 3000},   {wire_kind::automatic, false, 2000000},
      {wire_kind::automatic, true, 2000000}, {wire_kind::stores, false, 50000},
      {wire_kind::bulk, false, 50000},       {wire_kind::packets, false, 50000}};
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        std::mt19937_64 random(seed);
        const stream s;
        for (const way& tried : ways) {
          for (const int phases : {0, 1, 2}) {
            constexpr bool has_phases = std::is_same_v<TypeParam, untax::all_reduce> ||
                                        std::is_same_v<TypeParam, untax::broadcast>;
            if (phases > 0 && !has_phases) continue;
            any_count<TypeParam> op(w, tried.capacity,
                                    {.phases = phases,
                                     .wire = tried.wire,
                                     .varying_count = true,
                                     .direct = tried.direct});
            SCOPED_TRACE(
                fmt::format("seed {}, rank {} of {}: {}", seed, w.rank(), w.size(), op.text()));
            for (std::uint64_t run = 1; run <= runs_of_each; ++run) {
              const auto most = static_cast<std::uint64_t>(run % 3 == 0 ? 20 : tried.capacity);
              const auto count = static_cast<std::int64_t>(1 + random() % most);
              stall(s, static_cast<std::int64_t>(random() % 50) * w.rank());
              op.run(count, run, s);
              if (::testing::Test::HasFailure()) return;
            }
          }
        }
      },
      roomy_world());
}

}  // namespace
