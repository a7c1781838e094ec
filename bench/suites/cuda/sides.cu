#include "bench/suites/sides.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/flash_memory.hpp"
#include "bench/suites/cuda/l2_sides.hpp"
#include "bench/suites/cuda/replay.hpp"
#include "bench/suites/locality.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"
#include "src/world/cuda/energy.hpp"

namespace untax::bench {
namespace {

using host_clock = std::chrono::steady_clock;
using launch = std::function<void(cudaStream_t)>;

constexpr const char* as_they_come = "as they come";
constexpr const char* halves = "a part of the order each";
constexpr const char* evenly_mixed = "evenly mixed";

/// One placement of a kernel.
struct variant {
  std::string placement;
  launch run;
};

/// Joules at the times at which the driver updated its counter.
class energy_samples {
 public:
  explicit energy_samples(const gpu::energy_meter& meter) : meter_(meter), last_(meter.joules()) {}

  void look() {
    const std::optional<double> now = meter_.joules();
    if (!now || now == last_) return;
    last_ = now;
    end_ = host_clock::now();
    if (counts_++ == 0) begin_ = end_;
    (counts_ == 1 ? first_ : newest_) = *now;
  }
  /// The mean watts between the first and the last update.
  [[nodiscard]] std::optional<double> watts() const {
    if (counts_ < 2) return std::nullopt;
    return (newest_ - first_) / std::chrono::duration<double>(end_ - begin_).count();
  }

 private:
  const gpu::energy_meter& meter_;
  std::optional<double> last_;
  int counts_ = 0;
  double first_ = 0;
  double newest_ = 0;
  host_clock::time_point begin_;
  host_clock::time_point end_;
};

struct round_figure {
  double seconds = 0;  ///< of one run
  std::optional<double> watts;
};

class side_suite {
 public:
  explicit side_suite(const side_suite_options& options)
      : options_(options), sides_(find_l2_sides()) {
    report_.device = device_name("locality");
    for (const int side : {0, 1}) report_.sms[side] = sides_.count(side);
    report_.near_cycles = sides_.near_cycles;
    report_.far_cycles = sides_.far_cycles;
    report_.watts_most = meter_.limit();
  }

  side_report run() {
    const std::vector<flash_problem> problems = {
        {.heads = 64, .kv_heads = 64, .queries = 16384, .keys = 16384},
        {.batch = 4, .heads = 48, .kv_heads = 48, .queries = 8192, .keys = 8192},
        {.heads = 64, .kv_heads = 8, .queries = 16384, .keys = 16384},
        {.heads = 8, .kv_heads = 8, .queries = 65536, .keys = 65536}};
    const std::vector<replay_problem> replays = {
        {"attention", {{"heads", 64}, {"keys", 16384}}, "as numbered"},
        {"gemm", {{"m", 8192}, {"n", 8192}, {"k", 8192}}, "as numbered"},
        {"gemm", {{"m", 8192}, {"n", 8192}, {"k", 8192}}, "bands of 12 along x"}};
    if (options_.begin)
      options_.begin(3 * static_cast<std::int64_t>(2 + replays.size() + problems.size()));
    read("reads of 16 MB in L2", std::size_t{16} << 20U, 64);
    read("reads of 4 GB in memory", std::size_t{4} << 30U, 1);
    for (const replay_problem& one : replays) replay_in_turn(one);
    for (const flash_problem& one : problems) attend(one);
    return std::move(report_);
  }

 private:
  /// The part of `blocks` that corresponds to the multiprocessors of side 0.
  [[nodiscard]] int share_of_side_0(int blocks) const {
    return static_cast<int>(std::int64_t{blocks} * sides_.count(0) / std::ssize(sides_.of_sm));
  }
  void read(const std::string& kernel, std::size_t bytes, int passes);
  void replay_in_turn(const replay_problem& problem);
  void attend(const flash_problem& problem);

  [[nodiscard]] round_figure measure(const launch& run, double once) const;
  void compare(const std::string& kernel, double bytes, const std::vector<variant>& variants);

  side_suite_options options_;
  l2_sides sides_;
  gpu::energy_meter meter_;
  gpu::stopwatch clock_;
  gpu::event ends_[2];  // of batches
  std::mt19937 random_{1};
  side_report report_;
};

/// Runs one variant for the time of a round; the queue of the GPU never runs empty.
round_figure side_suite::measure(const launch& run, double once) const {
  constexpr double batch_seconds = 0.02;
  constexpr std::chrono::microseconds between_looks{200};
  const int batch = std::max(1, static_cast<int>(batch_seconds / once));
  const int batches =
      std::max(3, static_cast<int>(options_.seconds / (once * static_cast<double>(batch))));
  energy_samples energy(meter_);
  const auto look_until = [&](cudaEvent_t end) {
    for (;;) {
      const cudaError_t state = cudaEventQuery(end);
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) gpu::require(state, "a kernel that was timed failed");
      energy.look();
      std::this_thread::sleep_for(between_looks);
    }
  };
  clock_.start();
  for (int b = 0; b < batches; ++b) {
    for (int i = 0; i < batch; ++i) run(clock_.stream());
    gpu::require(cudaEventRecord(ends_[b % 2].get(), clock_.stream()), "cannot time a stream");
    if (b > 0) look_until(ends_[(b - 1) % 2].get());
  }
  look_until(ends_[(batches - 1) % 2].get());
  return {clock_.stop() / (static_cast<double>(batch) * batches), energy.watts()};
}

void side_suite::compare(const std::string& kernel, double bytes,
                         const std::vector<variant>& variants) {
  std::vector<double> once;
  for (const variant& one : variants) {
    one.run(clock_.stream());
    clock_.start();
    one.run(clock_.stream());
    once.push_back(clock_.stop());
  }
  std::vector<std::vector<double>> seconds(variants.size());
  std::vector<std::vector<double>> watts(variants.size());
  std::vector<std::size_t> turn(variants.size());
  std::iota(turn.begin(), turn.end(), std::size_t{0});
  for (int round = 0; round < options_.rounds; ++round) {
    std::ranges::shuffle(turn, random_);
    for (const std::size_t i : turn) {
      const round_figure found = measure(variants[i].run, once[i]);
      seconds[i].push_back(found.seconds);
      if (found.watts) watts[i].push_back(*found.watts);
    }
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    side_row row{kernel, variants[i].placement, bytes, spread_of(std::move(seconds[i])), {}};
    if (!watts[i].empty()) row.watts = spread_of(std::move(watts[i]));
    report_.rows.push_back(std::move(row));
  }
  if (options_.progress) options_.progress(std::ssize(variants));
}

void side_suite::read(const std::string& kernel, std::size_t bytes, int passes) {
  const device_buffer memory(bytes + l2_chunk);
  std::byte* const begin = first_chunk(memory);
  const auto values = static_cast<std::int64_t>(bytes / 2);
  gpu::fill_normal({begin, dtype::bf16, 1, values}, options_.seed, {0, 1}, {0, values},
                   {clock_.stream()});
  gpu::require(cudaStreamSynchronize(clock_.stream()), "cannot fill memory");
  const std::vector<std::uint8_t> homes = homes_of_chunks(sides_, begin, bytes);
  const auto at_1 = static_cast<double>(std::ranges::count(homes, std::uint8_t{1}));
  report_.share_of_side_0 = 1 - at_1 / static_cast<double>(homes.size());
  int apart = 0;
  for (std::size_t c = 0; c + 1 < homes.size(); c += 2) apart += homes[c] != homes[c + 1] ? 1 : 0;
  report_.pairs_apart = 2.0 * apart / static_cast<double>(homes.size());

  // The chunks for the multiprocessors of each side, in memory order and equally many.
  std::vector<std::int32_t> at_home[2];
  for (std::size_t c = 0; c < homes.size(); ++c)
    at_home[homes[c]].push_back(static_cast<std::int32_t>(c));
  const std::size_t each = std::min(at_home[0].size(), at_home[1].size()) / 2 * 2;
  for (auto& chunks : at_home) chunks.resize(each);
  std::vector<std::int32_t> mixed[2];
  for (std::size_t i = 0; i < 2 * each; ++i) mixed[i / 2 % 2].push_back(at_home[i % 2][i / 2]);
  const chunk_reader own(sides_, begin, {&at_home[0], &at_home[1]}, passes);
  const chunk_reader any(sides_, begin, {&mixed[0], &mixed[1]}, passes);
  const chunk_reader other(sides_, begin, {&at_home[1], &at_home[0]}, passes);
  compare(kernel, static_cast<double>(2 * each * l2_chunk) * passes,
          {{"at home on the own side", [&](cudaStream_t on) { own.run(on); }},
           {"at home on either side", [&](cudaStream_t on) { any.run(on); }},
           {"at home on the other side", [&](cudaStream_t on) { other.run(on); }}});
}

/// Reorders the elements: first `first` blocks, evenly spread over the order, then the others.
template <class T>
std::vector<T> by_turns(const std::vector<T>& order, int first) {
  std::vector<T> made;
  std::vector<T> rest;
  const std::int64_t all = std::ssize(order);
  for (std::int64_t i = 0; i < all; ++i) {
    const bool mine = (i + 1) * first / all > i * first / all;
    (mine ? made : rest).push_back(order[static_cast<std::size_t>(i)]);
  }
  made.insert(made.end(), rest.begin(), rest.end());
  return made;
}

void side_suite::replay_in_turn(const replay_problem& problem) {
  const std::optional<locality::device> d = description_of(report_.device);
  const locality::kernel k = problem.kernel(d ? d->sector : 32);
  const locality::schedule order = problem.schedule(k, d ? d->domains : 1);
  locality::schedule turned = order;
  turned.blocks = by_turns(order.blocks, share_of_side_0(k.blocks()));
  const auto placed = [&](const locality::schedule& s, int second) {
    return std::make_shared<replay>(
        k, s, replay::settings{step_seconds(k, d), sides_.of_sm, second, options_.seed});
  };
  // One queue: all positions are below the start of the second one.
  const auto free = placed(order, k.blocks());
  const auto split = placed(order, share_of_side_0(k.blocks()));
  const auto mixed = placed(turned, share_of_side_0(k.blocks()));
  compare(fmt::format("replay of {}, {}", problem.name, problem.order), replayed_bytes(k),
          {{as_they_come, [&](cudaStream_t on) { free->run(on); }},
           {halves, [&](cudaStream_t on) { split->run(on); }},
           {evenly_mixed, [&](cudaStream_t on) { mixed->run(on); }}});
}

void side_suite::attend(const flash_problem& p) {
  const flash_memory memory(p, clock_.stream());
  const auto order = gpu::flash_order_table(
      memory.shape(), order::attention_order::automatic,
      {static_cast<std::size_t>(gpu::attribute_here(cudaDevAttrL2CacheSize)), gpu::num_sms_here()});
  const int tiles = static_cast<int>(order.size());
  const gpu::flash_runner free(memory.shape(), order);
  const gpu::flash_runner split(memory.shape(), order, {sides_.of_sm, share_of_side_0(tiles)});
  const gpu::flash_runner mixed(memory.shape(), by_turns(order, share_of_side_0(tiles)),
                                {sides_.of_sm, share_of_side_0(tiles)});
  const auto runs = [&memory](const gpu::flash_runner& one) {
    return [&memory, op = &one](cudaStream_t on) { op->run(memory.operands(), {on}); };
  };
  compare(
      fmt::format("attention of {} x {}/{} heads, {} keys", p.batch, p.heads, p.kv_heads, p.keys),
      0, {{as_they_come, runs(free)}, {halves, runs(split)}, {evenly_mixed, runs(mixed)}});
}

}  // namespace

side_report run_side_suite(const side_suite_options& options) { return side_suite(options).run(); }

}  // namespace untax::bench
