// Ranks that share a GPU: how much of it each may take, and what has to be refused.
#include <algorithm>
#include <set>

#include "src/symmetric/queues.hpp"
#include "src/world/watching_tool.hpp"
#include "support.hpp"

namespace {

using untax::errc;
using untax::most_blocks_at_once;
using untax::most_queues;
using untax::most_streams;
using untax::part_of_gpu;
using untax::stream_pool;
using world_test::error_of;
using world_test::expect_error;

TEST(shared_gpu, parts_are_pairs_of_multiprocessors_that_fit_together) {
  for (int num_sms = 16; num_sms <= 160; ++num_sms) {
    EXPECT_EQ(part_of_gpu(num_sms, 1), num_sms);
    for (int ranks = 2; ranks <= 8; ++ranks) {
      const int part = part_of_gpu(num_sms, ranks);
      EXPECT_EQ(part % 2, 0);
      EXPECT_GE(part, 2);
      EXPECT_LE(part * ranks, num_sms);
      EXPECT_GT((part + 2) * ranks, num_sms) << "no more than the rest is left out";
    }
  }
}

TEST(shared_gpu, all_blocks_of_all_ranks_have_a_multiprocessor) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const int part = part_of_gpu(132, ranks);
    for (int each = 1; each <= 16; ++each) {
      const int most = most_blocks_at_once(each, part, ranks);
      if (ranks == 1) {
        EXPECT_EQ(most, each * 132);
      } else {
        EXPECT_EQ(most, part);
      }
    }
  }
}

TEST(shared_gpu, has_a_queue_for_each_stream) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    // Those of callers, and the two of a world.
    EXPECT_EQ(most_streams(ranks) + ranks + 2, most_queues);
    EXPECT_GE(most_streams(ranks), 2 * ranks) << "each rank has two, whatever its operators";
  }
}

/// Streams that are made count.
struct counted {
  int made = 0;
  stream_pool pool{[this](int) {
    ++made;
    return static_cast<void*>(&pool + made);  // never followed
  }};
};

TEST(stream_pool, makes_as_many_as_are_in_use_at_once) {
  std::mt19937_64 random(1);
  counted c;
  std::vector<stream_pool::handle> held;
  std::set<stream_pool::handle> seen;
  std::size_t most = 0;
  for (int i = 0; i < 5000; ++i) {
    if (held.size() < 20 && (held.empty() || random() % 2 == 0)) {
      held.push_back(c.pool.take(3));
      seen.insert(held.back());
      EXPECT_EQ(std::set(held.begin(), held.end()).size(), held.size()) << "each is taken once";
    } else {
      const std::size_t which = random() % held.size();
      c.pool.give_back(3, held[which]);
      held[which] = held.back();
      held.pop_back();
    }
    most = std::max(most, held.size());
    ASSERT_EQ(c.pool.made(3), static_cast<int>(most));
  }
  EXPECT_EQ(seen.size(), most);
  EXPECT_EQ(c.made, static_cast<int>(most));
}

TEST(stream_pool, keeps_devices_apart) {
  counted c;
  const auto stream = c.pool.take(0);
  EXPECT_EQ(c.pool.made(1), 0);
  c.pool.give_back(0, stream);
  EXPECT_NE(c.pool.take(1), stream);
  EXPECT_EQ(c.pool.made(0), 1);
  EXPECT_EQ(c.pool.made(1), 1);
  EXPECT_EQ(c.pool.take(0), stream);
}

TEST(stream_pool, is_unchanged_after_a_failure) {
  bool fails = true;
  stream_pool pool([&](int) -> void* {
    if (fails) throw untax::error(errc::internal, "no stream");
    return &fails;
  });
  EXPECT_THROW((void)pool.take(0), untax::error);
  EXPECT_EQ(pool.made(0), 0);
  fails = false;
  EXPECT_EQ(pool.take(0), &fails);
  EXPECT_EQ(pool.made(0), 1);
}

TEST(watching_tool, is_seen_by_its_library) {
  const std::string line = "7f00-7f01 r-xp 0 00:01 1 /usr/lib/";
  EXPECT_FALSE(untax::watching_tool(line + "libc.so.6\n", ""));
  EXPECT_FALSE(untax::watching_tool("", "/opt/profiler/libinjection.so"));
  EXPECT_EQ(untax::watching_tool(line + "libsanitizer-collection.so\n", ""), "compute-sanitizer");
  EXPECT_EQ(untax::watching_tool(line + "libsanitizer-public.so\n", ""), "compute-sanitizer");
  EXPECT_EQ(untax::watching_tool("", "/opt/libsanitizer-collection.so"), "compute-sanitizer");
  EXPECT_FALSE(untax::watching_tool());
}

TEST(watching_tool, cannot_watch_ranks_that_share_a_gpu) {
  EXPECT_NO_THROW(untax::require_kernels_side_by_side(1, "compute-sanitizer"));
  EXPECT_NO_THROW(untax::require_kernels_side_by_side(8, std::nullopt));
  expect_error(
      error_of([] { untax::require_kernels_side_by_side(4, "compute-sanitizer"); }),
      errc::unsupported,
      {"4 ranks share a GPU under compute-sanitizer", "one kernel at a time", "a GPU of its own"});
}

}  // namespace
