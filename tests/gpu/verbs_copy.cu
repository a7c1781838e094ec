// put, get and copy of kernels against a plain loop: random sizes, alignments, strides and edges,
// for every group and for TMA, from rank 0 to the last rank and back.
#include <cstdint>
#include <random>
#include <vector>

#include <untax/world/device_world.cuh>
#include <untax/world/launch.hpp>

#include "gpus.hpp"

namespace {

using namespace gpu_test;
using untax::tile_bounds;
using untax::tile_view;

constexpr std::size_t bytes = 256 << 10;
using ring = untax::bulk_ring<3, 4096>;

/// A copy inside buffers of `bytes` bytes; offsets and strides are in elements.
struct request {
  std::int64_t to_begin;
  std::int64_t from_begin;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t to_stride;
  std::int64_t from_stride;
  tile_bounds bounds;
};

enum class copy_by { thread, warp, block, grid, bulk };

template <class T, copy_by how>
__global__ void __launch_bounds__(1024) carry_out(T* to, const T* from, request r) {
  const auto with = [&](const auto& group) {
    if (r.rows == 1 && r.bounds.rows == 1 && r.bounds.cols == r.cols) {
      untax::put(group, to + r.to_begin, from + r.from_begin, r.cols);
    } else {
      untax::copy(group, tile_view<T>(to + r.to_begin, r.rows, r.cols, r.to_stride),
                  tile_view<const T>(from + r.from_begin, r.rows, r.cols, r.from_stride), r.bounds);
    }
  };
  if constexpr (how == copy_by::thread) with(untax::device_thread{});
  if constexpr (how == copy_by::warp) with(untax::device_warp{});
  if constexpr (how == copy_by::block) with(untax::device_block{});
  if constexpr (how == copy_by::grid) with(untax::device_grid{});
  if constexpr (how == copy_by::bulk) {
    __shared__ ring::memory shared;
    const untax::device_block block;
    ring engine(block, shared);
    if (r.rows == 1 && r.bounds.rows == 1 && r.bounds.cols == r.cols) {
      untax::bulk_put(block, engine, to + r.to_begin, from + r.from_begin, r.cols);
    } else {
      untax::bulk_copy(block, engine, tile_view<T>(to + r.to_begin, r.rows, r.cols, r.to_stride),
                       tile_view<const T>(from + r.from_begin, r.rows, r.cols, r.from_stride),
                       r.bounds);
    }
  }
}

class lottery {
 public:
  explicit lottery(unsigned seed) : engine_(seed) {}
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }
  bool one_in(int n) { return number(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

template <class T>
request random_request(lottery& lot) {
  constexpr auto capacity = static_cast<std::int64_t>(bytes / sizeof(T));
  request r{};
  // Half of them start at multiples of 16 bytes on both sides, as real ones do.
  const std::int64_t step = lot.one_in(2) ? 16 / static_cast<std::int64_t>(sizeof(T)) : 1;
  const auto place = [&](std::int64_t most) { return lot.number(0, most / step) * step; };
  r.to_begin = place(64);
  r.from_begin = place(64);
  if (lot.one_in(3)) {
    r.rows = 1;
    r.cols = lot.one_in(3) ? lot.number(0, 64) : lot.number(0, capacity - 128);
    r.to_stride = r.from_stride = r.cols;
    r.bounds = {1, r.cols};
    return r;
  }
  r.cols = lot.number(1, lot.one_in(2) ? 40 : 3000);
  const auto wide = [&] { return (r.cols + place(80) + step - 1) / step * step; };
  r.to_stride = lot.one_in(4) ? r.cols : wide();
  r.from_stride = lot.one_in(4) ? r.cols : wide();
  r.rows = lot.number(1, (capacity - 128) / std::max(r.to_stride, r.from_stride));
  r.bounds = {r.rows - (lot.one_in(2) ? 0 : lot.number(-2, r.rows)),
              r.cols - (lot.one_in(2) ? 0 : lot.number(-2, r.cols))};
  return r;
}

template <class T>
std::vector<T> reference(std::vector<T> to, const std::vector<T>& from, const request& r) {
  for (std::int64_t row = 0; row < std::min(r.rows, r.bounds.rows); ++row) {
    for (std::int64_t col = 0; col < std::min(r.cols, r.bounds.cols); ++col)
      to[static_cast<std::size_t>(r.to_begin + row * r.to_stride + col)] =
          from[static_cast<std::size_t>(r.from_begin + row * r.from_stride + col)];
  }
  return to;
}

template <class T, copy_by how>
void launch(T* to, const T* from, const request& r, cudaStream_t s) {
  constexpr int blocks = how == copy_by::grid ? 5 : 1;
  constexpr int threads = how == copy_by::thread ? 1 : how == copy_by::warp ? 32 : 256;
  carry_out<T, how><<<blocks, threads, 0, s>>>(to, from, r);
  ok(cudaGetLastError());
}

template <class T, copy_by how>
void compare(untax::world& w, bool pulls, int rounds) {
  const auto count = bytes / sizeof(T);
  const auto buffer = w.allocate_cleared<T>(count, "buffer");
  const auto source = w.allocate_cleared<T>(count, "source");
  const stream s;
  const int last = w.size() - 1;
  w.barrier();
  if (w.rank() == 0) {
    lottery lot(static_cast<unsigned>(1000 * sizeof(T) + 10 * static_cast<int>(how) + pulls));
    T* to = pulls ? buffer.local() : buffer.at(last);
    T* from = pulls ? source.at(last) : source.local();
    for (int round = 0; round < rounds; ++round) {
      const request r = random_request<T>(lot);
      std::vector<T> there(count);
      std::vector<T> here(count);
      for (T& t : there) t = static_cast<T>(lot.number(0, 255));
      for (T& t : here) t = static_cast<T>(lot.number(0, 1 << 30));
      copy(to, there.data(), count, s);
      copy(from, here.data(), count, s);
      launch<T, how>(to, from, r, s.get());
      ASSERT_TRUE(s.done());
      ASSERT_EQ(values(to, count, s), reference(there, here, r))
          << r.rows << " x " << r.cols << " within " << r.bounds.rows << " x " << r.bounds.cols
          << ", from " << r.from_begin << " by " << r.from_stride << " to " << r.to_begin << " by "
          << r.to_stride << ", " << sizeof(T) << " bytes each";
    }
  }
  w.barrier();
  w.free(source);
  w.free(buffer);
}

template <copy_by how>
void compare_all(int rounds) {
  untax::run_gpus(
      std::min(gpus(), 2),
      [&](untax::world& w) {
        for (const bool pulls : {false, true}) {
          compare<std::uint8_t, how>(w, pulls, rounds);
          compare<std::uint16_t, how>(w, pulls, rounds);
          compare<float, how>(w, pulls, rounds);
          compare<std::uint64_t, how>(w, pulls, rounds);
        }
      },
      gpu_world());
}

TEST(gpu_verbs, a_thread_copies) {
  NEEDS_GPUS(1);
  compare_all<copy_by::thread>(8);
}
TEST(gpu_verbs, a_warp_copies) {
  NEEDS_GPUS(1);
  compare_all<copy_by::warp>(30);
}
TEST(gpu_verbs, a_block_copies) {
  NEEDS_GPUS(1);
  compare_all<copy_by::block>(60);
}
TEST(gpu_verbs, a_grid_copies) {
  NEEDS_GPUS(1);
  compare_all<copy_by::grid>(60);
}
TEST(gpu_verbs, the_copy_engine_copies) {
  NEEDS_GPUS(1);
  compare_all<copy_by::bulk>(60);
}

}  // namespace
