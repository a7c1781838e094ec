#include "bench/suites/cuda/replay.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/stream_ref.hpp>

#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/matrix/matrix.hpp"

namespace untax::bench {
namespace {

constexpr std::int64_t piece = 16;  // bytes that a thread reads or writes at once
constexpr int most_words = 32;      // of a record
constexpr int most_threads = 1024;  // of a block: half of the threads of a multiprocessor

/// Visits all pieces that a rectangle touches, by all threads of a block. Reads come from L2.
template <class Access>
__device__ void visit(const Access& a, std::int64_t first, std::int64_t left, unsigned& seen) {
  const std::int64_t from = max(left, std::int64_t{0});
  const std::int64_t to = min(left + a.bytes, a.pitch);
  if (from >= to) return;
  const auto most = static_cast<unsigned>((to - from) / piece + 2);
  const unsigned all = most * static_cast<unsigned>(a.rows);
#pragma unroll 8
  for (unsigned i = threadIdx.x; i < all; i += blockDim.x) {
    const std::int64_t row = first + i / most;
    if (row < 0 || row >= a.end_row) continue;
    const std::int64_t at = (row * a.pitch + from) / piece + i % most;
    if (at * piece >= row * a.pitch + to) continue;
    auto* const word = reinterpret_cast<uint4*>(a.operand) + at;
    if (a.is_write) {
      __stcg(word, make_uint4(0, 0, 0, 0));
    } else {
      const uint4 value = __ldcg(word);
      seen |= value.x | value.y | value.z | value.w;
    }
  }
}

__global__ void __launch_bounds__(most_threads)
    replay_locality(const __grid_constant__ replay::arguments run) {
  __shared__ int record[most_words];
  __shared__ int position;
  if (threadIdx.x == 0) {
    position = static_cast<int>(blockIdx.x);
    if (run.positions.taken != nullptr) position = gpu::sm_queue_cursor(run.positions).next();
  }
  __syncthreads();
  if (threadIdx.x < 1 + 2 * run.each)
    record[threadIdx.x] =
        __ldcg(run.records + std::int64_t{position} * run.record_words + threadIdx.x);
  __syncthreads();
  const int steps = record[0];
  unsigned seen = 0;
  for (int turn = 0; turn < steps; ++turn) {
    const int step = run.backward ? steps - 1 - turn : turn;
    for (int i = 0; i < run.each; ++i) {
      const auto& a = run.accesses[i];
      const bool always = a.when == locality::moment::every_step;
      const bool now = always || turn == (a.when == locality::moment::first_step ? 0 : steps - 1);
      const int moved = always ? step : 0;
      if (now)
        visit(a, record[1 + 2 * i] + a.row_per_step * moved,
              record[2 + 2 * i] + a.begin_per_step * moved, seen);
    }
    __syncthreads();
    const long long begin = clock64();
    while (clock64() - begin < run.pause) {
    }
  }
  // Never true for zeros, and hardly for random bits, but the compiler cannot know that.
  if (seen == 1) *run.sink = seen;
}

/// Whether two accesses differ only in their places.
bool is_elsewhere_alone(locality::access a, const locality::access& b) {
  a.row = b.row;
  a.column = b.column;
  return a == b;
}

[[noreturn]] void refuse(const locality::kernel& k, const char* why) {
  throw error(errc::unsupported, fmt::format("cannot replay \"{}\": it {}", k.title(), why));
}

}  // namespace

replay::replay(const locality::kernel& k, const locality::schedule& s, const settings& how)
    : blocks_(k.blocks()) {
  fill_operands(k, how.seed);
  const std::vector<locality::access> first = k.accesses(0);
  run_.each = static_cast<int>(first.size());
  if (run_.each > most_accesses) refuse(k, "reads and writes at too many places");
  for (int i = 0; i < run_.each; ++i)
    run_.accesses[i] = replayed(k, first[static_cast<std::size_t>(i)]);
  run_.record_words = (1 + 2 * run_.each + 7) / 8 * 8;  // whole sectors
  std::vector<int> records;
  for (const int block : s.blocks) {
    const std::size_t begin = records.size();
    records.push_back(k.steps(block));
    const std::vector<locality::access> all = k.accesses(block);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_elsewhere_alone(first[i], all[i])) refuse(k, "has rectangles of different sizes");
      records.push_back(static_cast<int>(all[i].row));
      const int bytes = k.operands()[static_cast<std::size_t>(all[i].operand)].element_bytes;
      records.push_back(static_cast<int>(all[i].column * bytes));
    }
    records.resize(begin + static_cast<std::size_t>(run_.record_words));
  }
  tables_.push_back(uploaded(records));
  tables_.emplace_back(sizeof(unsigned));
  run_.records = static_cast<const int*>(tables_[0].data());
  run_.sink = static_cast<unsigned*>(tables_[1].data());
  run_.backward = s.way == order::direction::backward;
  run_.pause =
      static_cast<long long>(how.step_seconds * 1e3 * gpu::attribute_here(cudaDevAttrClockRate));
  if (!how.queue_of_sm.empty()) {
    tables_.push_back(uploaded(how.queue_of_sm));
    tables_.emplace_back(2 * sizeof(int));
    run_.positions = {static_cast<const std::uint8_t*>(tables_[2].data()), how.second, blocks_,
                      static_cast<int*>(tables_[3].data())};
  }
  choose_residents(std::max(1, k.resident()));
}

void replay::fill_operands(const locality::kernel& k, std::uint64_t seed) {
  for (const locality::operand& o : k.operands()) {
    const auto bytes = static_cast<std::size_t>(o.rows * o.columns * o.element_bytes);
    operands_.emplace_back(bytes + static_cast<std::size_t>(piece));
    void* const data = operands_.back().data();
    gpu::require(cudaMemset(data, 0, bytes + piece), "cannot clear operands");
    if (seed == 0) continue;
    const auto values = static_cast<std::int64_t>(bytes / 2);
    gpu::fill_normal({data, dtype::bf16, 1, values}, seed++, {0, 1}, {0, values},
                     stream_ref(cudaStream_t{}));
  }
}

void replay::choose_residents(int resident) {
  threads_ = std::clamp(2 * most_threads / resident, 64, most_threads);
  // So many bytes that at most `resident` blocks fit on a multiprocessor.
  constexpr int reserved = 1024;  // by the system, of each block
  shared_bytes_ = gpu::attribute_here(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / resident /
                      reserved * reserved -
                  2 * reserved;
  shared_bytes_ =
      std::min(shared_bytes_, gpu::attribute_here(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  gpu::require(cudaFuncSetAttribute(replay_locality, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    shared_bytes_),
               "there is not enough shared memory");
}

void replay::run(cudaStream_t stream) const {
  if (run_.positions.taken != nullptr)
    gpu::require(cudaMemsetAsync(run_.positions.taken, 0, 2 * sizeof(int), stream),
                 "cannot clear queues");
  replay_locality<<<static_cast<unsigned>(blocks_), static_cast<unsigned>(threads_),
                    static_cast<std::size_t>(shared_bytes_), stream>>>(run_);
  gpu::require(cudaGetLastError(), "cannot replay a kernel");
}

replay::access replay::replayed(const locality::kernel& k, const locality::access& a) const {
  const locality::operand& o = k.operands()[static_cast<std::size_t>(a.operand)];
  access made;
  made.operand = static_cast<std::byte*>(operands_[static_cast<std::size_t>(a.operand)].data());
  made.pitch = o.columns * o.element_bytes;
  made.end_row = o.rows;
  made.row_per_step = a.row_per_step;
  made.bytes = a.columns * o.element_bytes;
  made.begin_per_step = a.column_per_step * o.element_bytes;
  made.rows = static_cast<int>(a.rows);
  made.is_write = a.is_write;
  made.when = a.when;
  return made;
}

}  // namespace untax::bench
