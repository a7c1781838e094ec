// Ranks that need a GPU and have none: all of them get the reason at once.
#include "ranks.hpp"

namespace {

using namespace multi_test;
using untax::errc;
using untax::world;

const rank_body one_on_a_gpu("one on a GPU", [] {
  auto options = small_world();
  options.memory = launched_rank() == 1 ? untax::memory_kind::cuda : untax::memory_kind::host;
  (void)world::from_environment(options);
});

const rank_body all_on_gpus("all on GPUs", [] { (void)world::from_environment(small_world()); });

TEST(gpus, a_rank_without_its_gpu_is_reported_by_all) {
  const auto begin = std::chrono::steady_clock::now();
  const outcome o = launch("one on a GPU", 3, {{"CUDA_VISIBLE_DEVICES", ""}});
  expect_error(o, 0, errc::unsupported, {"rank 0: rank 1: "});
  expect_error(o, 1, errc::unsupported, {"rank 1: "});
  expect_error(o, 2, errc::unsupported, {"rank 2: rank 1: "});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, soon);
}

TEST(gpus, without_gpus_all_ranks_fail_at_once) {
  const auto begin = std::chrono::steady_clock::now();
  const outcome o =
      launch("all on GPUs", 3, {{"CUDA_VISIBLE_DEVICES", ""}, {"UNTAX_MEMORY", "cuda"}});
  for (int rank = 0; rank < 3; ++rank) expect_error(o, rank, errc::unsupported, {"rank "});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, soon);
}

}  // namespace
