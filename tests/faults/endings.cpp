// Operators that end at a rank while its peers are still in their last run: what the rank does with
// the memory that it gets next must not reach them. Random operators, ways, worlds and stalls.
// UNTAX_FAULT_TRIALS chooses how many, UNTAX_FAULT_SEED which ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <untax/flow/fault_plan.hpp>
#include <untax/world/launch.hpp>

#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/flash_decode/workload.hpp"

namespace untax::testing {
namespace {

constexpr int most_stall_ms = 25;
constexpr int at_once = 3;  // most of its time a trial sleeps
/// NaN where it is read, and far ahead where it is waited for.
constexpr std::uint64_t poison_word = 0xFFFFFFFFFFFFFFFF;

std::uint64_t number_in_environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

/// An operator that ends early somewhere.
struct ending {
  std::string text;
  int ranks = 2;
  int epochs = 2;
  bool tight = false;  ///< the heap has no room but that of the operator
  double tolerance = 0;
  std::function<std::unique_ptr<trial>(world&, std::shared_ptr<fault_tap>)> make;
  std::vector<std::vector<fault>> stalls;  ///< of each rank
};

class choices {
 public:
  explicit choices(std::uint64_t seed) : seed_(seed), random_(seed) {}

  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  template <class T>
  T one_of(std::initializer_list<T> from) {
    return *(from.begin() + between(0, static_cast<int>(from.size()) - 1));
  }
  bool coin() { return between(0, 1) == 1; }

  ending make() {
    ending e;
    e.ranks = between(2, 4);
    e.epochs = between(1, 3);
    e.tight = between(0, 3) == 0;
    const int kind = between(0, 4);
    if (kind < 3) {
      gemm(e);
    } else if (kind == 3) {
      collective(e);
    } else {
      attention(e);
    }
    for (int rank = 0; rank < e.ranks; ++rank) e.stalls.push_back(some_stalls(rank, e.epochs));
    e.text += fmt::format(", W {}, {} epochs{}, seed {}", e.ranks, e.epochs,
                          e.tight ? ", tight" : "", seed_);
    return e;
  }

 private:
  void gemm(ending& e) {
    const auto& entries = operators();
    const auto& entry =
        entries[static_cast<std::size_t>(between(0, static_cast<int>(entries.size()) - 1))];
    gemm_problem problem{.m = between(1, 20), .n = between(1, 20), .k = between(1, 24)};
    problem.type = dtype::f32;
    if (entry.gathers && coin()) problem.gather = gather_axis::k;
    operator_options options;
    options.how =
        one_of({pattern::bulk_library, pattern::bulk_synchronous, pattern::producer_consumer,
                pattern::fused_sequential, pattern::fused_specialized});
    if (entry.gathers && coin()) options.move = direction::pull;
    options.launch = one_of({launch_mode::graph, launch_mode::eager});
    options.workers = between(1, 2);
    options.senders = between(1, 2);
    options.tile_m = between(2, 8);
    options.tile_n = between(2, 8);
    options.panel_k = between(2, 8);
    e.tolerance = tolerance_of(entry, problem);
    e.text = fmt::format("{} {} {} m {} n {} k {} gather {}", entry.name, name_of(options.how),
                         name_of(options.move), problem.m, problem.n, problem.k,
                         name_of(problem.gather));
    e.make = [&entry, problem, options](world& w, std::shared_ptr<fault_tap> tap) {
      operator_options chosen = options;
      chosen.faults = std::move(tap);
      return std::make_unique<workload>(w, entry, problem, chosen, 1);
    };
  }

  void collective(ending& e) {
    const auto& entries = collectives();
    const auto& entry =
        entries[static_cast<std::size_t>(between(0, static_cast<int>(entries.size()) - 1))];
    collective_options options{.workers = between(1, 2), .chunk_bytes = 12, .depth = 2};
    options.how = collective_patterns[between(0, 2)];
    options.phases = entry.has_phases ? between(1, 2) : 0;
    options.direct = between(0, 3) == 0;
    if (options.direct) options.how = pattern::fused_sequential;
    const collective_problem problem{.count = between(1, 60)};
    e.tolerance = 1e-5;
    e.text = fmt::format("{} {} {} phases{}", entry.name, name_of(options.how), options.phases,
                         options.direct ? ", direct" : "");
    e.make = [&entry, problem, options](world& w, std::shared_ptr<fault_tap> tap) {
      collective_options chosen = options;
      chosen.faults = std::move(tap);
      return std::make_unique<collective_workload>(w, entry, problem, chosen, 1);
    };
  }

  void attention(ending& e) {
    attention_work work;
    work.problem = {.batch = between(1, 3),
                    .heads = 4,
                    .kv_heads = 2,
                    .head_dim = 8,
                    .keys = between(1, 20),
                    .type = dtype::f32};
    work.uneven = coin();
    flash_decode_options options;
    options.how = one_of({pattern::bulk_synchronous, pattern::producer_consumer,
                          pattern::fused_sequential, pattern::fused_specialized});
    options.workers = between(1, 2);
    e.tolerance = tolerance_of(work.problem);
    e.text = fmt::format("flash_decode {}", name_of(options.how));
    e.make = [work, options](world& w, std::shared_ptr<fault_tap> tap) {
      flash_decode_options chosen = options;
      chosen.faults = std::move(tap);
      return std::make_unique<attention_workload>(w, work, chosen, 1);
    };
  }

  /// Mostly in the last epoch, which is the one that others leave early.
  std::vector<fault> some_stalls(int rank, int epochs) {
    std::vector<fault> stalls;
    for (int i = between(0, 2); i > 0; --i) {
      fault f{.kind = fault_kind::stall, .rank = rank};
      f.epoch = static_cast<std::uint64_t>(between(0, 3) == 0 ? between(1, epochs) : epochs);
      f.nth = static_cast<std::uint64_t>(between(1, between(1, 24)));
      f.duration = std::chrono::milliseconds(between(1, most_stall_ms));
      stalls.push_back(f);
    }
    return stalls;
  }

  std::uint64_t seed_;
  std::mt19937_64 random_;
};

/// Several faults of one rank.
class fault_plans final : public fault_tap {
 public:
  explicit fault_plans(const std::vector<fault>& faults) {
    for (const fault& f : faults) plans_.push_back(std::make_unique<fault_plan>(f));
  }
  void before(const fault_site& site) override {
    for (const auto& plan : plans_) plan->before(site);
  }

 private:
  std::vector<std::unique_ptr<fault_plan>> plans_;
};

/// How many results were wrong at this rank.
int end_early(world& w, const ending& e) {
  int wrong = 0;
  std::size_t taken = w.heap().used();
  auto load =
      e.make(w, std::make_shared<fault_plans>(e.stalls[static_cast<std::size_t>(w.rank())]));
  taken = w.heap().used() - taken;
  // The largest allocation that the rest of the heap can hold.
  const std::size_t guard = w.heap().guarded() ? symmetric_heap::guard_bytes : 0;
  if (e.tight) (void)w.allocate<std::byte>(w.heap().largest_free() - guard, "what takes the rest");
  for (int epoch = 1; epoch <= e.epochs; ++epoch) {
    load->refresh(static_cast<std::uint64_t>(epoch));
    load->poison_result();
    load->run();
    const bool right = load->relative_error() <= e.tolerance;  // NaN is not
    wrong += right ? 0 : 1;
  }
  load.reset();
  if (taken > 0) {
    const auto next =
        w.allocate<std::uint64_t>((taken - guard) / sizeof(std::uint64_t), "what comes next");
    for (int peer = 0; peer < w.size(); ++peer) {
      // Ranks poison the same words. Atomics race only with a rank that still uses the memory.
      for (std::size_t i = 0; i < next.size(); ++i)
        std::atomic_ref(*next.at(peer, i)).store(poison_word, std::memory_order_relaxed);
    }
  }
  w.barrier();
  return wrong;
}

/// The fault of a trial; empty if there is none.
std::string complaint_about(const ending& e) {
  std::atomic<int> wrong = 0;
  world_options options;
  options.heap_bytes = std::size_t{1} << 20;
  options.wait_limit = std::chrono::seconds(20);
  try {
    run_threads(
        e.ranks, [&](world& w) { wrong += end_early(w, e); }, options);
  } catch (const std::exception& failure) {
    return e.text + ": " + failure.what();
  }
  return wrong == 0 ? "" : fmt::format("{}: {} wrong results", e.text, wrong.load());
}

TEST(endings, actions_of_a_rank_after_the_end_do_not_reach_its_peers) {
  const auto trials = number_in_environment("UNTAX_FAULT_TRIALS", 120);
  const auto first = number_in_environment("UNTAX_FAULT_SEED", 1);
  std::atomic<std::uint64_t> next = 0;
  std::mutex mutex;
  std::vector<std::string> complaints;
  {
    std::vector<std::jthread> judges;
    for (int i = 0; i < at_once; ++i) {
      judges.emplace_back([&] {
        for (std::uint64_t at = next++; at < trials; at = next++) {
          const std::string complaint = complaint_about(choices(first + at).make());
          if (complaint.empty()) continue;
          const std::scoped_lock lock(mutex);
          complaints.push_back(complaint);
        }
      });
    }
  }
  std::string some;
  for (std::size_t i = 0; i < complaints.size() && i < 10; ++i) some += "\n" + complaints[i];
  EXPECT_EQ(complaints.size(), 0U) << "of " << trials << " trials:" << some;
}

}  // namespace
}  // namespace untax::testing
