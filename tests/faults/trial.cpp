#include "trial.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include <untax/world/world.hpp>

namespace untax::testing {
namespace {

using clock = std::chrono::steady_clock;

/// Most of its time a trial waits for a limit to pass.
constexpr int trials_at_once = 3;

/// Ends the program if a trial hangs: the one outcome that no fault may have.
class hang_guard {
 public:
  explicit hang_guard(std::string what)
      : thread_([this, what = std::move(what)] {
          std::unique_lock lock(mutex_);
          if (done_.wait_for(lock, std::chrono::seconds(300), [this] { return finished_; })) return;
          std::fprintf(stderr, "hangs: %s\n", what.c_str());
          std::_Exit(EXIT_FAILURE);
        }) {}
  hang_guard(const hang_guard&) = delete;
  hang_guard& operator=(const hang_guard&) = delete;
  ~hang_guard() {
    {
      const std::scoped_lock lock(mutex_);
      finished_ = true;
    }
    done_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
  std::thread thread_;
};

void run_epochs(world& w, const faulty_case& c, const operator_options& options, std::uint64_t seed,
                rank_end& end) {
  workload load(w, c.entry, c.problem, options, seed);
  for (std::uint64_t epoch = 1; epoch <= epochs_of_a_trial; ++epoch) {
    load.refresh(seed + epoch);
    load.poison_result();
    load.run();
    const bool right = load.relative_error() <= tolerance_of(c.entry, c.problem);  // NaN is not
    end.wrong += right ? 0 : 1;
    ++end.epochs;
  }
}

rank_end run_rank(world& mine, const faulty_case& c, const fault& f, std::uint64_t seed) {
  rank_end end;
  const auto plan = std::make_shared<fault_plan>(f);
  operator_options options = c.options;
  options.faults = plan;
  try {
    mine.run([&](world& w) { run_epochs(w, c, options, seed, end); });
  } catch (const error& e) {
    end.failed = true;
    end.code = e.code();
    end.text = e.what();
  }
  end.struck = plan->struck();
  end.room_struck = plan->target();
  return end;
}

/// Calls `body` with the world of every rank, each on a thread of its own; a rank's world ends with
/// its body.
template <class Body>
void on_all_ranks(const faulty_case& c, std::chrono::milliseconds wait_limit, Body&& body) {
  world_options options;
  options.heap_bytes = heap_for(c.problem, c.world);
  options.wait_limit = wait_limit;
  std::vector<world> views = world::threads(c.world, options);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < c.world; ++rank) {
    threads.emplace_back([&, rank] {
      world mine = std::move(views[static_cast<std::size_t>(rank)]);
      body(rank, mine);
    });
  }
  for (std::thread& t : threads) t.join();
}

std::uint64_t number_in_environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

}  // namespace

bool trial::failed() const {
  return std::any_of(ranks.begin(), ranks.end(), [](const rank_end& r) { return r.failed; });
}

bool trial::struck() const {
  return std::any_of(ranks.begin(), ranks.end(), [](const rank_end& r) { return r.struck; });
}

std::string trial::texts() const {
  std::string text;
  for (const rank_end& r : ranks) {
    if (r.failed) text += fmt::format("[{}] {}\n", name_of(r.code), r.text);
  }
  return text;
}

trial run_trial(const faulty_case& c, const fault& f, std::chrono::milliseconds wait_limit,
                std::uint64_t seed) {
  const hang_guard guard(c.describe() + ", " + f.text());
  trial t;
  t.ranks.resize(static_cast<std::size_t>(c.world));
  const auto begin = clock::now();
  on_all_ranks(c, wait_limit, [&](int rank, world& mine) {
    t.ranks[static_cast<std::size_t>(rank)] = run_rank(mine, c, f, seed);
  });
  t.took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
  return t;
}

std::vector<fault_site> sites_of(const faulty_case& c) {
  std::vector<std::vector<fault_site>> found(static_cast<std::size_t>(c.world));
  on_all_ranks(c, long_limit, [&](int rank, world& mine) {
    const auto record = std::make_shared<site_record>();
    operator_options options = c.options;
    options.faults = record;
    rank_end end;
    run_epochs(mine, c, options, 1, end);
    found[static_cast<std::size_t>(rank)] = record->sites();
  });
  std::vector<fault_site> sites;
  for (const auto& of_rank : found) sites.insert(sites.end(), of_rank.begin(), of_rank.end());
  // Workers come by in any order; the sample should not depend on it.
  const auto key = [](const fault_site& s) {
    return std::tuple(s.rank, s.epoch, s.kernel, s.worker, s.step, s.verb);
  };
  std::sort(sites.begin(), sites.end(),
            [&](const fault_site& a, const fault_site& b) { return key(a) < key(b); });
  return sites;
}

std::string complaint(const trial& t, int suspect, const std::optional<room>& r) {
  for (std::size_t rank = 0; rank < t.ranks.size(); ++rank) {
    const rank_end& end = t.ranks[rank];
    if (end.wrong > 0) return fmt::format("rank {} has a wrong result\n{}", rank, t.texts());
    if (!end.failed && end.epochs < epochs_of_a_trial)
      return fmt::format("rank {} ended early without an error", rank);
  }
  if (!t.failed()) return "";
  if (!t.struck()) return "a rank failed before the fault struck:\n" + t.texts();
  // The errors of all ranks have the report of one, so each of them has to name the suspect.
  for (const rank_end& end : t.ranks) {
    if (!end.failed) continue;
    const bool named =
        end.text.find(fmt::format("Suspect: rank {} ", suspect)) != std::string::npos ||
        end.text.find(fmt::format("rank {} finished without", suspect)) != std::string::npos;
    if (!named) return fmt::format("an error does not name rank {}:\n{}", suspect, end.text);
    if (end.text.find(r ? fmt::format("room {},", r->number) : "room ") == std::string::npos)
      return fmt::format("an error does not name room {}:\n{}", r ? r->number : -1, end.text);
  }
  return "";
}

void for_sampled_sites(const std::string& what, std::size_t samples, bool signals,
                       const std::function<void(const faulty_case&, const fault_site&)>& judge) {
  samples = number_in_environment("UNTAX_FAULT_SAMPLES", samples);
  const std::uint64_t seed = number_in_environment("UNTAX_FAULT_SEED", 1);
  const std::vector<faulty_case> cases = all_cases({2, 3});
  std::size_t count = 0;
  std::vector<std::pair<const faulty_case*, fault_site>> chosen;
  for (const faulty_case& c : cases) {
    std::vector<fault_site> sites = sites_of(c);
    if (signals) sites = signals_among(sites);
    count += sites.size();
    for (const fault_site& site : sample(sites, samples, seed + count))
      chosen.emplace_back(&c, site);
  }
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> judges;
    for (int i = 0; i < trials_at_once; ++i) {
      judges.emplace_back([&] {
        for (std::size_t at = next++; at < chosen.size(); at = next++) {
          if (::testing::Test::HasFailure()) return;
          judge(*chosen[at].first, chosen[at].second);
        }
      });
    }
  }
  if (::testing::Test::HasFailure()) {
    std::printf("%s: failed with UNTAX_FAULT_SEED=%llu\n", what.c_str(),
                static_cast<unsigned long long>(seed));
    return;
  }
  std::printf("%s: %zu of %zu %s\n", what.c_str(), chosen.size(), count,
              signals ? "signals" : "sites");
}

void expect_right(const faulty_case& c, const fault& f) {
  const trial t = run_trial(c, f, long_limit, 7);
  const std::string wrong = complaint(t, f.rank, {});
  EXPECT_EQ(wrong, "") << c.describe() << ", " << f.text();
  EXPECT_FALSE(t.failed()) << c.describe() << ", " << f.text() << "\n" << t.texts();
}

trial expect_right_or_named(const faulty_case& c, const fault& f) {
  const auto judge = [&](const trial& t) {
    const auto& struck = t.ranks[static_cast<std::size_t>(f.rank)].room_struck;
    // A free counter belongs to all rooms that one worker retires at once, so the producer may
    // wait for it in the name of another of them.
    return complaint(t, f.rank, f.verb == channel_verb::publish ? struck : std::nullopt);
  };
  trial t = run_trial(c, f, short_limit, 7);
  if (!judge(t).empty() &&
      std::all_of(t.ranks.begin(), t.ranks.end(), [](const rank_end& r) { return r.wrong == 0; })) {
    // On a busy machine the short limit can strike where nothing is wrong. A wrong result is never
    // forgiven.
    t = run_trial(c, f, short_limit * 20, 7);
  }
  EXPECT_EQ(judge(t), "") << c.describe() << ", " << f.text();
  return t;
}

}  // namespace untax::testing
