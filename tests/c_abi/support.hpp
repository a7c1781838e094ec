#pragma once

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <untax/untax.h>

namespace c_test {

/// Small heaps, and waits that a busy machine does not bring to their limit.
inline untax_world_options small_world() {
  untax_world_options o{};
  o.size = sizeof o;
  o.heap_bytes = std::size_t{16} << 20U;
  o.wait_limit_ms = 60000;
  return o;
}

inline std::string last_text() { return untax_last_error().text; }

/// Expects that a call failed so, and that its text has these parts.
inline void expect_failure(int32_t status, untax_status expected,
                           const std::vector<std::string>& parts) {
  EXPECT_STREQ(untax_status_name(status), untax_status_name(expected)) << last_text();
  EXPECT_EQ(untax_last_error().status, expected);
  for (const std::string& part : parts) {
    EXPECT_NE(last_text().find(part), std::string::npos)
        << "missing: " << part << "\nin: " << last_text();
  }
}

#define EXPECT_OK(call) EXPECT_EQ(call, untax_ok) << c_test::last_text()

/// Runs `body(world, rank)` for each rank in a thread, and ends the worlds.
template <class Body>
void run_ranks(int ranks, const Body& body, const untax_world_options& options = small_world()) {
  std::vector<untax_world*> worlds(static_cast<std::size_t>(ranks));
  ASSERT_EQ(untax_world_threads(ranks, &options, worlds.data()), untax_ok) << last_text();
  std::vector<std::thread> threads;
  threads.reserve(worlds.size());
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      untax_world* const world = worlds[static_cast<std::size_t>(r)];
      body(world, r);
      EXPECT_OK(untax_world_destroy(world));
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace c_test
