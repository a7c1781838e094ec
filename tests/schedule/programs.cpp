// Programs as a whole. The checkers prove that they are right, and other programs would be, too:
// with another order, or other counters. But these are what was measured, and ranks of one build
// have to have the same. A rewrite of a protocol that is not meant to change the steps of its
// workers changes none of the fingerprints below. After an intended change programs.txt is written
// with
//
//     UNTAX_WRITE_PLANS=1 build/release/tests/schedule_test --gtest_filter='programs.*'
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/schedule/plan.hpp"
#include "engines/schedule/walk.hpp"
#include "ops/checks.hpp"
#include "ops/operators.hpp"
#include "tests/wanted_lines.hpp"

namespace untax::test {
namespace {

constexpr std::string_view file = "tests/schedule/programs.txt";

/// FNV-1a over numbers.
class fingerprint {
 public:
  template <class... Numbers>
  void take(Numbers... numbers) noexcept {
    (one(static_cast<std::uint64_t>(numbers)), ...);
  }
  void take_place(const place& p) noexcept { take(p.of, p.rank, p.row, p.col); }
  void take_room(const room& r) noexcept {
    take(r.producer, r.consumer, r.number, r.ready, r.free, r.readers, r.use, r.credit);
  }
  void take_step(const step& s) noexcept {
    take(s.what, s.first, s.last, s.everywhere, s.rows, s.cols, s.depth, s.combine, s.reader);
    for (const place& p : {s.from, s.weights, s.to}) take_place(p);
    for (const room& r : {s.reserve, s.acquire, s.publish, s.retire}) take_room(r);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  void one(std::uint64_t number) noexcept {
    for (int byte = 0; byte < 8; ++byte, number >>= 8U)
      value_ = (value_ ^ (number & 0xFFU)) * 0x100000001B3U;
  }
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

/// Of the cases of a variant for so many ranks together.
std::string line_of(const protocol_variant& variant, int ranks) {
  fingerprint f;
  std::size_t steps = 0;
  const auto cases = variant.schedule_cases(ranks, true);
  for (const schedule_case& c : cases) {
    for (const schedule::rank_plan& plan : c.plans()) {
      f.take(plan.rank(), plan.world(), plan.counters(), plan.tile().rows, plan.tile().cols,
             plan.lanes());
      for (const operand role : {operand::inbox, operand::outbox})
        f.take(plan.extent_of(role).rows, plan.extent_of(role).cols);
      for (const kernel& k : plan.kernels()) {
        f.take(k.stage, k.workers);
        for (const char letter : std::string_view(k.name)) f.take(letter);
      }
      schedule::each_step(plan, [&](const schedule::step_position& at, const step& s) {
        f.take(at.who.kernel, at.who.worker, at.epoch);
        f.take_step(s);
        ++steps;
      });
    }
  }
  return fmt::format("{}, {} ranks: {} cases, {} steps, {:016x}", variant.name, ranks, cases.size(),
                     steps, f.value());
}

TEST(programs, equal_the_recorded_fingerprints) {
  std::vector<std::string> lines;
  for (const operator_spec& operation : operator_specs()) {
    for (const protocol_variant& variant : variants_of(operation)) {
      for (const int ranks : {1, 2, 3}) lines.push_back(line_of(variant, ranks));
    }
  }
  untax_test::expect_wanted_lines(file, lines);
}

}  // namespace
}  // namespace untax::test
