// A limit of file sizes counts for shared memory, too: it is an error, and no signal.
#include <sys/resource.h>

#include <csignal>

#include "ranks.hpp"

namespace {

using namespace multi_test;
using untax::errc;
using untax::world;

const rank_body limited("small files", [] {
  const rlimit limit{std::size_t{1} << 20, std::size_t{1} << 20};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  world w = world::from_environment(small_world());
});

TEST(file_limit, reached_by_one_process_is_an_error_at_all_ranks) {
  const outcome o = launch("small files", 2);
  for (int rank = 0; rank < 2; ++rank) {
    expect_error(o, rank, errc::out_of_memory,
                 {"cannot map", "File too large", "ulimit -f", "UNTAX_HEAP_BYTES"});
  }
}

}  // namespace
