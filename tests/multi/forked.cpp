// Ranks that fork: what a child does with its copies of world and operator, or that it just ends,
// is nothing that the other ranks see.
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include <untax/ops/collectives.hpp>

#include "ranks.hpp"

namespace {

using namespace multi_test;
using untax::all_reduce;
using untax::dtype;
using untax::world;

constexpr std::int64_t count = 1000;
constexpr unsigned hangs_after_s = 60;

void run_once(all_reduce& op) {
  const std::vector<float> in(count, 1.0F);
  std::vector<float> out(count);
  op.run({in.data(), dtype::f32, count}, {out.data(), dtype::f32, count});
  say(out.back() == static_cast<float>(op.plan().world) ? "RIGHT" : "WRONG");
}

const rank_body forks("forks", [] {
  std::optional<world> w(world::from_environment(small_world(20s)));
  std::optional<all_reduce> op;
  op.emplace(*w, untax::all_reduce_problem{.count = count, .type = dtype::f32},
             untax::collective_options{.workers = 2});
  run_once(*op);
  if (w->rank() == 1) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(hangs_after_s);
      op.reset();
      w.reset();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    say(status == 0 ? "CHILD ended" : "CHILD failed");
  }
  run_once(*op);
  w->barrier();
  op.reset();
  w->barrier();
});

TEST(forked_ranks, children_end_their_copies_unseen) {
  const outcome o = launch("forks", 3);
  expect_ok(o);
  EXPECT_EQ(o.said(1, "CHILD"), "ended") << o.all(1);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(o.all(rank).find("WRONG"), std::string::npos) << o.all(rank);
    EXPECT_NE(o.all(rank).find("RIGHT"), std::string::npos) << o.all(rank);
  }
}

}  // namespace
