// Collectives whose signals are lost, late or repeated, and whose workers stall: results are right,
// or the ranks that wait name what they wait for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <untax/flow/fault_plan.hpp>
#include <untax/world/launch.hpp>

#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"

namespace untax::testing {
namespace {

constexpr int ranks = 3;
// Strikes where nothing is wrong if the machine is busy, so nothing that has to end well has it.
constexpr auto short_limit = std::chrono::milliseconds(250);
constexpr auto long_limit = std::chrono::milliseconds(60000);

struct collective_way {
  const collective_entry& entry;
  collective_options options;

  [[nodiscard]] std::string describe() const {
    return fmt::format("{} {} {} phases{}", entry.name, name_of(options.how), options.phases,
                       options.direct ? ", direct" : "");
  }
};

/// Four epochs with these taps at the ranks. Every result is right, or this throws.
template <class TapOf>
void run_with(const collective_way& way, std::chrono::milliseconds limit, TapOf&& tap_of) {
  world_options settings;
  settings.wait_limit = limit;
  run_threads(
      ranks,
      [&](world& w) {
        collective_options options = way.options;
        options.faults = tap_of(w.rank());
        collective_workload load(w, way.entry, {.count = 41}, options, 1);
        for (std::uint64_t epoch = 1; epoch <= 4; ++epoch) {
          load.refresh(epoch);
          load.poison_result();
          load.run();
          EXPECT_EQ(load.wrong_bits(), 0) << "rank " << w.rank() << " epoch " << epoch;
        }
      },
      settings);
}

/// The sites that a rank passes.
std::vector<fault_site> sites_of(const collective_way& way, int rank) {
  const auto record = std::make_shared<site_record>();
  run_with(way, long_limit, [&](int other) {
    return other == rank ? std::static_pointer_cast<fault_tap>(record) : nullptr;
  });
  return record->sites();
}

/// Every collective, pattern and number of phases.
std::vector<collective_way> all_ways() {
  std::vector<collective_way> ways;
  for (const collective_entry& entry : collectives()) {
    for (const int phases : {1, 2}) {
      if (phases == 2 && !entry.has_phases) continue;
      collective_options options{.phases = phases, .workers = 2, .chunk_bytes = 12, .depth = 2};
      for (const pattern how : collective_patterns) {
        options.how = how;
        ways.push_back({entry, options});
      }
      options.how = pattern::fused_sequential;
      options.direct = true;
      ways.push_back({entry, options});
    }
  }
  return ways;
}

/// Calls `use(way, site)` for some sites of every way.
template <class Use>
void for_sampled_sites(bool signals, std::size_t count, Use&& use) {
  std::mt19937_64 random(1);
  for (const collective_way& way : all_ways()) {
    SCOPED_TRACE(way.describe());
    auto sites = sites_of(way, static_cast<int>(random() % ranks));
    if (signals) {
      std::erase_if(sites, [](const fault_site& s) {
        return s.verb == channel_verb::reserve || s.verb == channel_verb::acquire;
      });
    }
    std::shuffle(sites.begin(), sites.end(), random);
    if (sites.size() > count) sites.resize(count);
    for (const fault_site& site : sites) use(way, site);
  }
}

void run_faulty(const collective_way& way, const fault& f,
                std::chrono::milliseconds limit = long_limit) {
  SCOPED_TRACE(f.text());
  run_with(way, limit, [&](int) { return std::make_shared<fault_plan>(f); });
}

/// The error that a fault ends with under `limit`, if it does.
std::optional<error> error_under(std::chrono::milliseconds limit, const collective_way& way,
                                 const fault& f) {
  try {
    run_faulty(way, f, limit);
  } catch (const error& e) {
    return e;
  }
  return std::nullopt;
}

/// A worker that found it out while the operator was taken down lets the others speak.
bool is_named(const error& e, const collective_way& way) {
  const std::string text = e.what();
  const bool known =
      e.code() == errc::timeout || e.code() == errc::peer_lost || e.code() == errc::aborted;
  return known && text.find(way.entry.name) != std::string::npos &&
         text.find("Who waits for whom") != std::string::npos;
}

TEST(collective_faults, a_signal_that_comes_twice_or_late_changes_nothing) {
  for (const fault_kind kind :
       {fault_kind::duplicate, fault_kind::late_duplicate, fault_kind::delay}) {
    for_sampled_sites(true, 2, [&](const collective_way& way, const fault_site& site) {
      fault f = fault::at(kind, site);
      f.duration = std::chrono::milliseconds(5);
      run_faulty(way, f);
    });
  }
}

TEST(collective_faults, a_short_stall_changes_nothing) {
  for_sampled_sites(false, 3, [](const collective_way& way, const fault_site& site) {
    fault f = fault::at(fault_kind::stall, site);
    f.duration = std::chrono::milliseconds(5);
    run_faulty(way, f);
  });
}

TEST(collective_faults, a_lost_signal_is_harmless_or_named) {
  int named = 0;
  for_sampled_sites(true, 1, [&](const collective_way& way, const fault_site& site) {
    const fault f = fault::at(fault_kind::drop, site);
    auto wrong = error_under(short_limit, way, f);
    // The limit may have struck before the fault did.
    if (wrong && !is_named(*wrong, way)) wrong = error_under(20 * short_limit, way, f);
    if (!wrong) return;
    ++named;
    EXPECT_TRUE(is_named(*wrong, way)) << wrong->what();
  });
  EXPECT_GT(named, 0) << "somebody waits for most signals";
}

}  // namespace
}  // namespace untax::testing
