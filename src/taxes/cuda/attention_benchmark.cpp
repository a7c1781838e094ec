#include "src/taxes/cuda/attention_benchmark.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/half.hpp>

#include "engines/bulk/quickest.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/gpu/attention/attention_runner.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/flash_decode/backend.hpp"
#include "ops/flash_decode/planning.hpp"
#include "src/taxes/cuda/benchmark_case.hpp"
#include "src/taxes/pattern_figure.hpp"

namespace untax {
namespace {

constexpr std::int64_t rotated_bytes = std::int64_t{200} << 20;
constexpr int most_places = 16;
constexpr int most_splits = 64;
constexpr std::uint64_t seed = 5;
constexpr pattern own_patterns[] = {pattern::bulk_synchronous, pattern::producer_consumer,
                                    pattern::fused_sequential};

std::int64_t cache_bytes(const flash_decode_problem& p) {
  const extent size = cache_extent(p);
  return size.rows * size.cols * static_cast<std::int64_t>(size_of(p.type));
}

int places_of(const flash_decode_problem& p) {
  return static_cast<int>(
      std::clamp<std::int64_t>(rotated_bytes / (2 * cache_bytes(p)) + 1, 1, most_places));
}

/// The data and operators of one rank. Its GPU has to be the current device.
class rank_work {
 public:
  rank_work(world& w, const flash_decode_problem& problem, stream_ref stream)
      : problem_(problem),
        places_(places_of(problem)),
        one_(round_up<std::int64_t>(cache_bytes(problem), 512)),
        q_(row_bytes()),
        out_(row_bytes()),
        keys_(static_cast<std::size_t>(one_ * places_)),
        values_(static_cast<std::size_t>(one_ * places_)),
        lengths_(static_cast<std::size_t>(problem.batch) * sizeof(std::int32_t)) {
    const auto rank = static_cast<std::uint64_t>(w.rank());
    const matrix queries = rows(q_);
    gpu::fill_normal(queries, seed, {0, queries.rows}, {0, queries.cols}, stream);
    for (int place = 0; place < places_; ++place) {
      const auto number = seed + 2 * (rank + 1) * most_places + static_cast<std::uint64_t>(place);
      fill(keys_, place, number, stream);
      fill(values_, place, number + most_places, stream);
    }
    const std::vector<std::int32_t> lengths(static_cast<std::size_t>(problem.batch),
                                            static_cast<std::int32_t>(problem.keys));
    bulk::copy_and_wait(lengths_.data(), lengths.data(), lengths.size() * sizeof(lengths[0]));
    alone_ = std::make_unique<gpu::attention_runner>(
        w, std::string(flash_decode_name), device_shape(problem), gpu::attention_sink::rows, 0);
  }

  void plan(world& w, pattern how) {
    ops_.push_back(std::make_unique<flash_decode>(w, problem_, flash_decode_options{.how = how}));
  }

  void run(std::size_t number, int i, stream_ref stream) {
    ops_[number]->run(as_const(rows(q_)), shard(i), rows(out_), stream);
  }
  void run_alone(int i, stream_ref stream) {
    const attention_shard held = shard(i);
    alone_->attend({.queries = q_.data(),
                    .keys = held.keys.data,
                    .values = held.values.data,
                    .out = out_.data(),
                    .queries_stride = problem_.head_dim,
                    .keys_stride = held.keys.stride,
                    .values_stride = held.values.stride,
                    .out_stride = problem_.head_dim,
                    .lengths = held.lengths,
                    .page_table = nullptr},
                   stream);
  }

  void poison(stream_ref stream) const { gpu::fill_nan(out_.data(), row_bytes(), stream); }
  [[nodiscard]] std::vector<std::uint16_t> result(stream_ref stream) const {
    wait_for(stream, "flash_decode failed");
    std::vector<std::uint16_t> bits(row_bytes() / sizeof(std::uint16_t));
    bulk::copy_and_wait(bits.data(), out_.data(), row_bytes());
    return bits;
  }

 private:
  [[nodiscard]] std::size_t row_bytes() const {
    return static_cast<std::size_t>(problem_.batch * problem_.heads * problem_.head_dim) *
           size_of(problem_.type);
  }
  [[nodiscard]] matrix rows(const bulk::scratch& memory) const {
    return {memory.data(), problem_.type, problem_.batch * problem_.heads, problem_.head_dim};
  }
  [[nodiscard]] matrix cache(const bulk::scratch& memory, int place) const {
    const extent size = cache_extent(problem_);
    return {memory.data(static_cast<std::size_t>(one_ * place)), problem_.type, size.rows,
            size.cols};
  }
  void fill(const bulk::scratch& memory, int place, std::uint64_t number, stream_ref stream) const {
    const matrix m = cache(memory, place);
    gpu::fill_normal(m, number, {0, m.rows}, {0, m.cols}, stream);
  }
  [[nodiscard]] attention_shard shard(int i) const {
    return {.keys = as_const(cache(keys_, i % places_)),
            .values = as_const(cache(values_, i % places_)),
            .lengths = static_cast<const std::int32_t*>(lengths_.data())};
  }

  flash_decode_problem problem_;
  int places_;
  std::int64_t one_;
  bulk::scratch q_;
  bulk::scratch out_;
  bulk::scratch keys_;
  bulk::scratch values_;
  bulk::scratch lengths_;
  std::unique_ptr<gpu::attention_runner> alone_;
  std::vector<std::unique_ptr<flash_decode>> ops_;
};

/// One pattern, and the step of the ablation that it measures.
struct pattern_case {
  std::string step;
  std::string name;
  benchmark_case it;
};

class attention_benchmark {
 public:
  attention_benchmark(gpu_team& team, const flash_decode_problem& problem)
      : team_(team), problem_(problem), work_(static_cast<std::size_t>(team.size())) {
    team_.together([&](world& w) {
      at(w.rank()) = std::make_unique<rank_work>(w, problem, team_.stream_of(w.rank()));
      at(w.rank())->plan(w, pattern::bulk_library);
      for (const pattern how : own_patterns) at(w.rank())->plan(w, how);
    });
  }
  attention_benchmark(const attention_benchmark&) = delete;
  attention_benchmark& operator=(const attention_benchmark&) = delete;
  ~attention_benchmark() {
    team_.together([&](world& w) { at(w.rank()).reset(); });
  }

  void measure_into(tax_row& row, int repeats) {
    std::vector<pattern_case> cases;
    cases.push_back({"E0", "bulk_library, eager", {of(0), true}});
    cases.push_back({"E1", "bulk_library, graph", {of(0)}});
    for (std::size_t i = 0; i < std::size(own_patterns); ++i) {
      cases.push_back({step_of(own_patterns[i]),
                       fmt::format("{}, graph", name_of(own_patterns[i])),
                       {of(i + 1)}});
    }
    benchmark_case alone{[this](int rank, int i, cudaStream_t s) { at(rank)->run_alone(i, s); }};
    std::vector<benchmark_case*> in_turn = {&alone};
    for (pattern_case& c : cases) in_turn.push_back(&c.it);
    const double read = 2 * static_cast<double>(cache_bytes(problem_));
    const int times = bulk::runs_in_graph(read / 4e12 + 5e-6);
    verify(cases);
    capture(team_, in_turn, times);
    time_in_turn(team_, in_turn, times, repeats);
    for (const pattern_case& c : cases) add_step(row, c.step, c.name, c.it.time());
    row.compute = alone.time();
  }

 private:
  std::unique_ptr<rank_work>& at(int rank) { return work_[static_cast<std::size_t>(rank)]; }
  std::function<void(int, int, cudaStream_t)> of(std::size_t number) {
    return [this, number](int rank, int i, cudaStream_t s) { at(rank)->run(number, i, s); };
  }

  /// Checks the results, which have to be equal: all patterns combine in the same order.
  void verify(const std::vector<pattern_case>& cases) {
    std::vector<std::uint16_t> right;
    for (const pattern_case& c : cases) {
      std::vector<std::vector<std::uint16_t>> found(work_.size());
      team_.together([&](world& w) {
        cudaStream_t stream = team_.stream_of(w.rank());
        at(w.rank())->poison(stream);
        c.it.run(w.rank(), 0, stream);
        found[static_cast<std::size_t>(w.rank())] = at(w.rank())->result(stream);
        w.check();
      });
      if (right.empty()) right = found[0];
      // Elements that are still poisoned have all bits set.
      const bool written = std::ranges::count(right, std::uint16_t{0xffff}) == 0;
      if (written && std::ranges::all_of(found, [&](const auto& bits) { return bits == right; }))
        continue;
      throw error(
          errc::internal,
          fmt::format("flash_decode, {}: the result of {} differs from that of bulk_library",
                      describe(problem_), c.name));
    }
  }

  gpu_team& team_;
  flash_decode_problem problem_;
  std::vector<std::unique_ptr<rank_work>> work_;
};

}  // namespace

tax_row measure_device_attention(gpu_team& team, const layer_operation& op, int repeats,
                                 const spread& link_rate) {
  tax_row row;
  row.op = op;
  row.link = seconds_at(attention_bytes_sent(op, team.size()), link_rate);
  attention_benchmark(team, attention_problem_of(op)).measure_into(row, repeats);
  return row;
}

std::size_t heap_for_attention(const layer_operation& op, int ranks) {
  const std::size_t operators = std::size(own_patterns) + 2;
  return heap_for(attention_problem_of(op), ranks, most_splits) * operators;
}

}  // namespace untax
