#include <gtest/gtest.h>

#include <random>

#include <untax/core/error.hpp>

#include "engines/model/explore.hpp"
#include "engines/schedule/check.hpp"
#include "engines/schedule/walk.hpp"
#include "ops/common/model_check.hpp"
#include "tests/schedule/broken.hpp"
#include "tests/schedule/exchange.hpp"

// The model engine on a protocol that is small enough to see what it should find.

namespace untax::test {
namespace {

using model::scenario;

scenario exchange_scenario(int world, int senders, int sets, layout how) {
  scenario s;
  s.name =
      "exchange of " + std::to_string(world) + ", " + std::to_string(senders) + " of them send";
  s.plans = exchange_plans(world, senders, sets, how);
  s.a = [](int rank, std::uint64_t epoch, std::int64_t, std::int64_t k) {
    return model::sample(epoch, rank, k);
  };
  s.b = [](int rank, std::int64_t col, std::int64_t k) {
    return model::sample(0, 10 * rank + col, k);
  };
  s.expected = [=, a = s.a, b = s.b](int rank, std::uint64_t epoch, std::int64_t row,
                                     std::int64_t col) {
    const int source =
        exchange(world, rank, senders, sets, how).sources()[static_cast<std::size_t>(row)];
    return a(source, epoch, 0, 0) * b(rank, col, 0) + a(source, epoch, 0, 1) * b(rank, col, 1);
  };
  return s;
}

TEST(explore, finds_nothing_wrong_with_a_right_protocol) {
  for (const layout how : {layout::one_worker, layout::two_workers, layout::two_stages}) {
    for (int world = 1; world <= 3; ++world) {
      const auto result =
          model::explore(exchange_scenario(world, world, 2, how), {.executions = 2000});
      EXPECT_TRUE(result.ok) << result.failure;
      EXPECT_EQ(result.executions, 2000U);
    }
  }
}

TEST(explore, completes_the_bounded_tree_of_two_threads) {
  const auto result =
      model::explore(exchange_scenario(2, 1, 2, layout::one_worker),
                     {.how = model::strategy::bounded, .executions = 500'000, .switches = 2});
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
}

TEST(explore, kills_every_mutant) {
  const std::vector<scenario> scenarios = {exchange_scenario(2, 2, 2, layout::two_workers),
                                           exchange_scenario(3, 1, 2, layout::two_workers)};
  const auto fates = model::hunt_mutants(scenarios, {.executions = 20'000});
  EXPECT_EQ(fates.size(), 8U);  // four verbs, left out or weakened
  for (const auto& fate : fates) EXPECT_TRUE(fate.killed) << fate.name;
}

// The search misses no verb that the schedule checker proves to be superfluous.
TEST(explore, agrees_with_the_schedule_checker_on_mutants) {
  const scenario both_ways = exchange_scenario(2, 2, 2, layout::one_worker);
  const scenario one_way = exchange_scenario(2, 1, 2, layout::one_worker);
  for (const auto& m : model::mutants_of(both_ways)) {
    for (const scenario* s : {&both_ways, &one_way}) {
      const auto result = model::explore(*s, m, {.executions = 2000});
      EXPECT_EQ(result.ok, model::provably_harmless(*s, m))
          << s->name << ": " << model::describe(m, *s);
    }
  }
}

// A verb that one scenario does without may be what another needs.
TEST(explore, finds_the_scenario_that_needs_a_verb) {
  const std::vector<scenario> both_ways = {exchange_scenario(2, 2, 2, layout::one_worker)};
  const std::vector<scenario> one_way = {exchange_scenario(2, 1, 2, layout::one_worker)};
  int needed = 0;
  for (model::mutant_fate fate : model::hunt_mutants(both_ways, {.executions = 2000})) {
    if (!fate.harmless) continue;
    model::find_need(fate, both_ways);
    EXPECT_EQ(fate.needed_in, "") << fate.name;
    model::find_need(fate, one_way);
    EXPECT_EQ(fate.needed_in.empty(), model::provably_harmless(one_way.front(), fate.what))
        << fate.name;
    needed += fate.needed_in.empty() ? 0 : 1;
  }
  EXPECT_GT(needed, 0);
}

TEST(variant_findings, are_clean_if_all_surviving_mutants_are_equivalent) {
  const auto fate = [](const char* name, bool killed, bool harmless, const char* needed_in) {
    model::mutant_fate mutant;
    mutant.name = name;
    mutant.killed = killed;
    mutant.harmless = harmless;
    mutant.needed_in = needed_in;
    return mutant;
  };
  const model::mutant_fate caught = fate("caught", true, false, "");
  const model::mutant_fate missed = fate("missed", false, false, "");
  const model::mutant_fate needless = fate("needless", false, true, "");
  const model::mutant_fate equal = fate("equal", false, true, "3 ranks");
  variant_findings findings;
  findings.mutants = {caught, equal};
  EXPECT_TRUE(findings.right());
  EXPECT_EQ(findings.hunted(), 1U);
  EXPECT_TRUE(findings.troubles().empty());
  ASSERT_EQ(findings.equivalents().size(), 1U);
  EXPECT_NE(findings.equivalents().front().find("equal"), std::string::npos);
  for (const model::mutant_fate& alive : {missed, needless}) {
    findings.mutants = {caught, equal, alive};
    EXPECT_FALSE(findings.right());
    EXPECT_EQ(findings.hunted(), 2U);
    ASSERT_EQ(findings.troubles().size(), 1U);
    EXPECT_NE(findings.troubles().front().find(alive.name), std::string::npos);
    EXPECT_EQ(findings.equivalents().size(), 1U);
  }
}

/// Takes one verb away from one step; "" if the step has none.
std::string break_somewhere(scenario& s, std::minstd_rand& lot) {
  const auto one_of = [&](std::size_t count) { return static_cast<std::size_t>(lot()) % count; };
  auto& plan = s.plans[one_of(s.plans.size())];
  const auto& stage = plan.stages()[one_of(plan.stages().size())];
  const auto who = stage[one_of(stage.size())];
  const std::uint64_t epoch = 1 + one_of(plan.epochs());
  auto& steps = plan.steps(who, epoch);
  if (steps.empty()) return "";
  const std::size_t index = one_of(steps.size());
  const auto verb = static_cast<channel_verb>(one_of(4));
  if (!(steps[index].*schedule::room_of(verb)).named()) return "";
  steps[index].*schedule::room_of(verb) = {};
  return std::string(schedule::name_of(verb)) + " of " +
         schedule::describe(plan, {plan.rank(), who, epoch, static_cast<int>(index)});
}

TEST(explore, agrees_with_the_schedule_checker_on_random_damage) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::minstd_rand lot(seed);
  int right = 0;
  int wrong = 0;
  while (right + wrong < 80) {
    const int world = 2 + static_cast<int>(lot() % 2);
    const int senders = 1 + static_cast<int>(lot() % 2);
    const int sets = 1 + static_cast<int>(lot() % 2);
    scenario s = exchange_scenario(world, senders, sets, static_cast<layout>(lot() % 3));
    const std::string damage = break_somewhere(s, lot);
    if (damage.empty()) continue;
    const auto proof = schedule::check_schedule(s.plans);
    const auto result = model::explore(s, {.executions = 400});
    ++(proof.ok() ? right : wrong);
    EXPECT_EQ(result.ok, proof.ok())
        << s.name << ", " << sets << " sets, without " << damage << ": "
        << (proof.ok() ? result.failure : proof.problems.front());
  }
  EXPECT_GT(right, 0);
  EXPECT_GT(wrong, 0);
}

TEST(explore, says_where_a_result_is_wrong) {
  scenario s = exchange_scenario(2, 2, 2, layout::one_worker);
  s.expected = [right = s.expected](int rank, std::uint64_t epoch, std::int64_t row,
                                    std::int64_t col) {
    return right(rank, epoch, row, col) + (rank == 1 && epoch == 2 && row == 1 && col == 0 ? 1 : 0);
  };
  const auto result = model::explore(s, {});
  EXPECT_EQ(result.failure.rfind("after epoch 2 c(1, 0) of rank 1 is ", 0), 0U) << result.failure;
}

TEST(explore, says_where_threads_are_stuck) {
  scenario s = exchange_scenario(2, 2, 2, layout::one_worker);
  edit_steps(s.plans[1], [](step& st) { st.publish = {}; });
  const auto result = model::explore(s, {});
  EXPECT_EQ(result.executions, 1U);
  EXPECT_NE(result.failure.find("the threads wait for ever"), std::string::npos) << result.failure;
  EXPECT_NE(result.failure.find(
                "rank 0, kernel exchange, worker 0, epoch 1, step 3 (multiply): acquire of room 1"),
            std::string::npos)
      << result.failure;
}

TEST(explore, names_the_racing_threads) {
  scenario s = exchange_scenario(2, 1, 1, layout::two_workers);
  edit_steps(s.plans[0], [](step& st) { st.reserve = {}; });
  const auto result = model::explore(s, {});
  EXPECT_NE(result.failure.find("race"), std::string::npos) << result.failure;
  EXPECT_NE(result.failure.find(": reads and writes"), std::string::npos) << result.failure;
}

TEST(explore, refuses_more_threads_than_it_has) {
  EXPECT_THROW(
      static_cast<void>(model::explore(exchange_scenario(7, 7, 2, layout::two_workers), {})),
      error);
  EXPECT_THROW(static_cast<void>(model::explore(exchange_scenario(3, 3, 2, layout::two_workers),
                                                {.how = model::strategy::exhaustive})),
               error);
}

TEST(explore, repeats_itself) {
  const scenario s = exchange_scenario(2, 1, 1, layout::two_workers);
  const auto m = model::mutants_of(s).front();
  const auto first = model::explore(s, m, {.seed = 7});
  const auto second = model::explore(s, m, {.seed = 7});
  EXPECT_EQ(first.executions, second.executions);
  EXPECT_EQ(first.failure, second.failure);
}

}  // namespace
}  // namespace untax::test
