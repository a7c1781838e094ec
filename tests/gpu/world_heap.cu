// The symmetric heap in GPU memory: every rank reaches every copy, from kernels and by copies.
#include <algorithm>
#include <cstdint>

#include <untax/symmetric/symmetric.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"

namespace {

using namespace gpu_test;
using untax::errc;
using untax::symmetric;
using untax::world;

constexpr int count = 1000;

/// The value of element i at rank `rank`.
__host__ __device__ constexpr std::uint32_t expected(int rank, int i) {
  return static_cast<std::uint32_t>(1000003 * (rank + 1) + i);
}

__global__ void write_all(symmetric<std::uint32_t> field, int ranks) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    for (int peer = 0; peer < ranks; ++peer)
      *field.at(peer, field.rank() * count + i) = expected(field.rank(), i);
  }
}

/// Counts the elements of all ranks' copies that are not what their writer put there.
__global__ void count_wrong(symmetric<std::uint32_t> field, int ranks, unsigned* wrong) {
  for (int i = static_cast<int>(threadIdx.x); i < ranks * count;
       i += static_cast<int>(blockDim.x)) {
    for (int at = 0; at < ranks; ++at) {
      if (*field.at(at, i) != expected(i / count, i % count)) atomicAdd(wrong, 1U);
    }
  }
}

TEST(gpu_heap, kernels_reach_every_copy) {
  NEEDS_GPUS(1);
  for (int ranks = 1; ranks <= gpus(); ++ranks) {
    untax::run_gpus(
        ranks,
        [&](world& w) {
          const stream s;
          const auto size = static_cast<std::size_t>(ranks * count);
          const auto field = w.allocate_cleared<std::uint32_t>(size, "field");
          const auto wrong = w.allocate_cleared<unsigned>(1, "wrong");
          EXPECT_EQ(w.device(), w.rank() / gpu_test::sharing());
          EXPECT_EQ(w.owner_of(field.at(ranks - 1)), ranks - 1);
          EXPECT_EQ(w.translate(field.local(), ranks - 1), field.at(ranks - 1));
          write_all<<<1, 256, 0, s.get()>>>(field, ranks);
          EXPECT_TRUE(s.done());
          w.barrier();
          count_wrong<<<1, 256, 0, s.get()>>>(field, ranks, wrong.local());
          EXPECT_TRUE(s.done());
          EXPECT_EQ(values(wrong.local(), 1, s)[0], 0U) << "rank " << w.rank() << " of " << ranks;
        },
        gpu_world());
  }
}

TEST(gpu_heap, copies_reach_peers) {
  NEEDS_GPUS(2);
  const int ranks = gpus();
  untax::run_gpus(
      ranks,
      [&](world& w) {
        const stream s;
        const auto inbox = w.allocate_cleared<int>(count, "inbox");
        const int next = (w.rank() + 1) % ranks;
        const std::vector<int> mine(count, 7 + w.rank());
        copy(inbox.at(next), mine.data(), mine.size(), s);
        w.barrier();
        const int before = (w.rank() + ranks - 1) % ranks;
        EXPECT_EQ(values(inbox.local(), count, s), std::vector<int>(count, 7 + before));
      },
      gpu_world());
}

TEST(gpu_heap, is_cleared_when_asked_and_reused_when_freed) {
  NEEDS_GPUS(1);
  untax::run_gpus(
      1,
      [](world& w) {
        const stream s;
        const auto first = w.allocate_cleared<int>(count, "first");
        EXPECT_EQ(values(first.local(), count, s), std::vector<int>(count, 0));
        copy(first.local(), std::vector<int>(count, 42).data(), count, s);
        w.free(first);
        const auto second = w.allocate<int>(count, "second");
        EXPECT_EQ(second.local(), first.local());
        EXPECT_EQ(values(second.local(), count, s), std::vector<int>(count, 42));
        w.free(second);
        const auto third = w.allocate_cleared<int>(count, "third");
        EXPECT_EQ(values(third.local(), count, s), std::vector<int>(count, 0));
      },
      gpu_world());
}

TEST(gpu_heap, guards_find_a_write_past_the_end) {
  NEEDS_GPUS(1);
  auto options = gpu_world();
  options.heap_guards = true;
  std::vector<world> alone = world::local_gpus(1, options);
  alone[0].use_device();
  const stream s;
  const auto field = alone[0].allocate<char>(1000, "field");
  alone[0].heap().check();
  copy(field.local(1003), "x", 1, s);
  expect_error(error_of([&] { alone[0].heap().check(); }), errc::internal,
               {"past the end of \"field\"", "at byte 1003"});
  expect_error(error_of([&] { alone[0].free(field); }), errc::internal, {"field"});
}

TEST(gpu_heap, reports_when_it_is_full) {
  NEEDS_GPUS(1);
  auto options = gpu_world();
  options.heap_bytes = std::size_t{1} << 40;
  expect_error(error_of([&] { (void)world::local_gpus(1, options); }), errc::out_of_memory,
               {"rank 0", "GPU 0", "are free", "UNTAX_HEAP_BYTES"});
  options = gpu_world();
  options.heap_limit = options.heap_bytes;
  std::vector<world> alone = world::local_gpus(1, options);
  expect_error(error_of([&] { (void)alone[0].allocate<char>(std::size_t{9} << 20, "too much"); }),
               errc::out_of_memory, {"too much", "symmetric heap of rank 0", "UNTAX_HEAP_LIMIT"});
}

TEST(gpu_heap, grows_when_it_is_full) {
  NEEDS_GPUS(1);
  const int ranks = gpus();
  untax::run_gpus(
      ranks,
      [&](world& w) {
        const stream s;
        const auto early = w.allocate_cleared<std::uint32_t>(count, "early");
        copy(early.local(), std::vector<std::uint32_t>(count, 42).data(), count, s);
        for (int round = 1; round <= 3; ++round) {
          constexpr std::size_t more = std::size_t{25} << 20;  // of 4 bytes: some steps
          const auto large = w.allocate<std::uint32_t>(more, "large");
          EXPECT_GE(w.heap().capacity(), static_cast<std::size_t>(round) * more * 4);
          EXPECT_EQ(values(large.local(more - count), count, s),
                    std::vector<std::uint32_t>(count, 0));
          const auto size = static_cast<std::size_t>(ranks * count);
          const auto field = w.allocate_cleared<std::uint32_t>(size, "field");
          const auto wrong = w.allocate_cleared<unsigned>(1, "wrong");
          write_all<<<1, 256, 0, s.get()>>>(field, ranks);
          EXPECT_TRUE(s.done());
          w.barrier();
          count_wrong<<<1, 256, 0, s.get()>>>(field, ranks, wrong.local());
          EXPECT_TRUE(s.done());
          EXPECT_EQ(values(wrong.local(), 1, s)[0], 0U) << "rank " << w.rank();
        }
        EXPECT_EQ(values(early.local(), count, s), std::vector<std::uint32_t>(count, 42));
        // No GPU has so much. All ranks hear it, and the world goes on.
        const std::size_t capacity = w.heap().capacity();
        expect_error(error_of([&] { (void)w.allocate<char>(std::size_t{400} << 30, "too much"); }),
                     errc::out_of_memory, {"on GPU", "are free", "too much"});
        EXPECT_EQ(w.heap().capacity(), capacity);
        w.barrier();
        (void)w.allocate_cleared<char>(std::size_t{40} << 20, "enough");
      },
      gpu_world());
}

TEST(gpu_heap, refuses_more_ranks_than_gpus_with_their_number) {
  NEEDS_GPUS(1);
  expect_error(error_of([] { (void)world::local_gpus(untax::max_ranks, gpu_world()); }),
               errc::unsupported, {"a world of ", "visible to this process"});
}

/// Compares free memory, and so needs a GPU that no other process uses.
TEST(gpu_heap, worlds_follow_each_other) {
  NEEDS_GPUS(1);
  NEEDS_NO_TOOL("it compares free memory, and the tool takes some");
  std::size_t free_before = 0;
  for (int round = 0; round < 6; ++round) {
    untax::run_gpus(
        std::min(2, gpus()),
        [](world& w) {
          const stream s;
          const auto field = w.allocate<int>(count, "field");
          EXPECT_EQ(values(field.local(), count, s), std::vector<int>(count, 0)) << "fresh";
          copy(field.local(), std::vector<int>(count, 5).data(), count, s);
          w.barrier();
        },
        gpu_world());
    std::size_t free_now = 0;
    std::size_t all = 0;
    ok(cudaSetDevice(0));
    ok(cudaMemGetInfo(&free_now, &all));
    if (round > 1)
      EXPECT_EQ(free_now, free_before)
          << "a world has left something, or another process uses this GPU";
    free_before = free_now;
  }
}

}  // namespace
