#include "bench/suites/locality.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/locality/library.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/vectors.cuh"
#include "engines/gpu/launch/num_sms.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"

namespace untax::bench {
namespace {

constexpr std::int64_t piece = 16;  // bytes that a thread reads or writes at once
constexpr int most_accesses = 8;
constexpr int most_threads = 1024;  // of a block, and half of what a multiprocessor has room for

/// What all blocks do with an operand, as `locality::access` has it, in bytes.
struct replayed_access {
  std::byte* operand = nullptr;
  std::int64_t pitch = 0;  ///< of a row of the operand
  std::int64_t end_row = 0;
  std::int64_t row_per_step = 0;
  std::int64_t bytes = 0;  ///< of a row of the rectangle
  std::int64_t begin_per_step = 0;
  int rows = 0;
  bool is_write = false;
  locality::moment when = locality::moment::every_step;
};

/// Of each position of the dispatch there is a record: the steps of its block, and of each access
/// the row and the byte in it where the rectangle begins. It is short, and read once, so that
/// counters see little else than what is replayed.
struct replay_arguments {
  replayed_access accesses[most_accesses];
  int each = 0;
  const int* records = nullptr;
  int record_words = 0;
  bool backward = false;
  long long pause = 0;  ///< cycles behind the reads of a step
  unsigned* sink = nullptr;
};

/// All pieces that a rectangle touches, by all threads of a block. What is read comes from L2.
__device__ void visit(const replayed_access& a, std::int64_t first, std::int64_t left,
                      unsigned& seen) {
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
    replay_locality(const __grid_constant__ replay_arguments run) {
  __shared__ int record[1 + 2 * most_accesses];
  if (threadIdx.x < 1 + 2 * run.each)
    record[threadIdx.x] =
        __ldcg(run.records + std::int64_t{blockIdx.x} * run.record_words + threadIdx.x);
  __syncthreads();
  const int steps = record[0];
  unsigned seen = 0;
  for (int turn = 0; turn < steps; ++turn) {
    const int step = run.backward ? steps - 1 - turn : turn;
    for (int i = 0; i < run.each; ++i) {
      const replayed_access& a = run.accesses[i];
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
  // Operands are zeros, which only the GPU finds out.
  if (seen != 0) *run.sink = seen;
}

/// The description of a GPU that a driver calls so.
std::optional<locality::device> description_of(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const locality::named_text& one : locality::built_in_devices()) {
    if (name.find(one.name) != std::string::npos) return locality::device_named(one.name);
  }
  return std::nullopt;
}

template <class T>
device_buffer uploaded(const std::vector<T>& values) {
  device_buffer made(values.size() * sizeof(T));
  gpu::require(
      cudaMemcpy(made.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
      "cannot hand a table over");
  return made;
}

/// A kernel in one order, ready to run.
class replay_trial {
 public:
  replay_trial(const locality::kernel& k, const locality::schedule& s, double step_seconds)
      : blocks_(k.blocks()) {
    for (const locality::operand& o : k.operands()) {
      const auto bytes = static_cast<std::size_t>(o.rows * o.columns * o.element_bytes);
      operands_.emplace_back(bytes + static_cast<std::size_t>(piece));
      gpu::require(cudaMemset(operands_.back().data(), 0, bytes + piece), "cannot clear operands");
    }
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
        static_cast<long long>(step_seconds * 1e3 * gpu::attribute_here(cudaDevAttrClockRate));
    threads_ = std::clamp(2 * most_threads / std::max(1, k.resident()), 64, most_threads);
    // So much that no more blocks than that are on a multiprocessor.
    constexpr int reserved = 1024;  // by the system, of each block
    shared_bytes_ = gpu::attribute_here(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
                        std::max(1, k.resident()) / reserved * reserved -
                    2 * reserved;
    shared_bytes_ =
        std::min(shared_bytes_, gpu::attribute_here(cudaDevAttrMaxSharedMemoryPerBlockOptin));
    gpu::require(cudaFuncSetAttribute(replay_locality, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      shared_bytes_),
                 "there is not enough shared memory");
  }

  void run(cudaStream_t stream) const {
    replay_locality<<<static_cast<unsigned>(blocks_), static_cast<unsigned>(threads_),
                      static_cast<std::size_t>(shared_bytes_), stream>>>(run_);
    gpu::require(cudaGetLastError(), "cannot replay a kernel");
  }

 private:
  [[nodiscard]] replayed_access replayed(const locality::kernel& k,
                                         const locality::access& a) const {
    const locality::operand& o = k.operands()[static_cast<std::size_t>(a.operand)];
    replayed_access made;
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

  /// Whether nothing but the place differs.
  [[nodiscard]] static bool is_elsewhere_alone(locality::access a, const locality::access& b) {
    a.row = b.row;
    a.column = b.column;
    return a == b;
  }
  [[noreturn]] static void refuse(const locality::kernel& k, const char* why) {
    throw error(errc::unsupported, fmt::format("cannot replay \"{}\": it {}", k.title(), why));
  }

  int blocks_;
  int threads_ = most_threads;
  int shared_bytes_ = 0;
  std::vector<device_buffer> operands_;
  std::vector<device_buffer> tables_;
  replay_arguments run_;
};

}  // namespace

replay_report run_replay_suite(const replay_suite_options& options) {
  replay_report report;
  report.device = device_name("locality");
  const std::optional<locality::device> d = description_of(report.device);
  if (d) report.described = d->name;
  const gpu::stopwatch clock;
  const std::vector<replay_problem> problems = replay_problems(options);
  if (options.begin) options.begin(static_cast<std::int64_t>(problems.size()));
  for (const replay_problem& problem : problems) {
    const locality::kernel k = problem.kernel(d ? d->sector : 32);
    const locality::schedule s = problem.schedule(k, d ? d->domains : 1);
    const double share =
        d ? locality::assumptions{}.efficiency * d->flops / d->all_processors() : 0;
    const replay_trial trial(k, s, d ? k.flops() * k.resident() / share : 0);
    std::vector<double> seconds;
    for (int repeat = -1; repeat < options.repeats; ++repeat) {
      clock.start();
      trial.run(clock.stream());
      const double one = clock.stop();
      if (repeat >= 0) seconds.push_back(one);
    }
    replay_row row;
    row.problem = problem;
    row.blocks = k.blocks();
    row.requested_bytes = replayed_bytes(k);
    row.launches = options.repeats + 1;
    row.time = spread_of(std::move(seconds));
    if (d) {
      row.simulated = locality::simulate(k, *d, s);
    }
    report.rows.push_back(std::move(row));
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
