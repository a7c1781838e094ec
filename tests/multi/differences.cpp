// If ranks make different calls, the error at every rank has both sides.
#include <map>

#include "ranks.hpp"

namespace {

using namespace multi_test;
using untax::environment;
using untax::errc;
using untax::world;

const rank_body heap_sizes("heap sizes", [] {
  untax::world_options options = small_world();
  if (launched_rank() == 1) options.heap_bytes = std::size_t{2} << 20;
  world w = world::from_environment(options);
});

TEST(differences, in_heap_size_are_found_at_the_start) {
  const belongings before = belongings::now();
  const outcome o = launch("heap sizes", 3);
  for (int rank = 0; rank < 3; ++rank) {
    expect_error(o, rank, errc::disagreement,
                 {"different settings", "|  rank 0: untax ", "heap 1048576 bytes",
                  "|  rank 1: untax ", "heap 2097152 bytes"});
  }
  EXPECT_EQ(belongings::now(), before);
}

const rank_body heap_variable("heap variable", [] {
  const std::map<std::string, std::string> v = {
      {"UNTAX_RANK", std::to_string(launched_rank())},
      {"UNTAX_WORLD_SIZE", std::to_string(launched_size())},
      {"UNTAX_RENDEZVOUS", std::getenv("UNTAX_RENDEZVOUS")},
      {"UNTAX_HEAP_BYTES", launched_rank() == 0 ? "1M" : "1024K"},
      {"UNTAX_WAIT_LIMIT_MS", launched_rank() == 0 ? "1000" : "2000"}};
  world w = world::from_environment({}, environment(v));
});

TEST(differences, in_the_environment_are_found_at_the_start) {
  const outcome o = launch("heap variable", 2);
  for (int rank = 0; rank < 2; ++rank) {
    expect_error(o, rank, errc::disagreement,
                 {"wait limit 1000 ms", "wait limit 2000 ms", "heap 1048576 bytes"});
  }
}

const rank_body world_sizes("world sizes", [] {
  const std::map<std::string, std::string> v = {
      {"UNTAX_RANK", std::to_string(launched_rank())},
      {"UNTAX_WORLD_SIZE", launched_rank() == 2 ? "5" : "3"},
      {"UNTAX_RENDEZVOUS", std::getenv("UNTAX_RENDEZVOUS")}};
  world w = world::from_environment(small_world(), environment(v));
});

TEST(differences, in_world_size_are_found_at_the_start) {
  const outcome o = launch("world sizes", 3);
  for (int rank = 0; rank < 3; ++rank) {
    expect_error(o, rank, errc::disagreement, {", 3 ranks,", "|  rank 2: untax", ", 5 ranks,"});
  }
}

const rank_body allocations("allocations", [] {
  world w = world::from_environment(small_world());
  w.run([](world& self) {
    (void)self.allocate<float>(64, "common");
    (void)self.allocate<float>(self.rank() == 2 ? 128 : 64, "inbox");
    self.barrier();
  });
});

TEST(differences, in_an_allocation_are_found_at_the_next_barrier) {
  const outcome o = launch("allocations", 3);
  for (int rank = 0; rank < 3; ++rank) {
    expect_error(
        o, rank, errc::disagreement,
        {"|  rank 2: allocate 512 bytes for \"inbox\"", ": allocate 256 bytes for \"inbox\""});
  }
}

const rank_body operators("operators", [] {
  world w = world::from_environment(small_world());
  w.run([](world& self) {
    self.agree(self.rank() == 1 ? "gemm_reduce_scatter" : "all_gather_gemm", "m=64 n=32 k=16 fp32");
  });
});

TEST(differences, in_an_operator_are_found_at_once) {
  const outcome o = launch("operators", 3);
  for (int rank = 0; rank < 3; ++rank) {
    expect_error(o, rank, errc::disagreement,
                 {"|  rank 1: gemm_reduce_scatter: m=64 n=32 k=16 fp32",
                  ": all_gather_gemm: m=64 n=32 k=16 fp32"});
  }
}

}  // namespace
