#include "bench/suites/norm.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <untax/core/error.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/collectives.hpp>

#include "bench/suites/cuda/add_and_normalise.cuh"
#include "bench/suites/cuda/vectors.cuh"
#include "engines/bulk/quickest.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/bulk/slab_gather.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "ops/common/deviation.hpp"
#include "src/taxes/cuda/benchmark_case.hpp"
#include "src/taxes/cuda/gpu_team.hpp"

namespace untax::bench {
namespace {

constexpr dtype type = dtype::bf16;
/// The relative error of a row's root mean square and of the products with it, all in fp32.
constexpr double arithmetic_share = 1e-5;

/// The run of one rank, and the addresses of its results; null if these are not checked.
struct rank_run {
  std::function<void(stream_ref)> run;
  void* x = nullptr;
  void* out = nullptr;
  std::string explanation;
};

/// Inputs and results of one rank, which all variants share, for one problem.
class norm_work {
 public:
  norm_work(world& w, const all_reduce_norm_problem& p, cudaStream_t stream)
      : world_(w),
        p_(p),
        count_(p.tokens * p.hidden),
        in_(w.allocate_owned<std::byte>(bytes(), "input")),
        sum_(w.allocate_owned<std::byte>(bytes(), "sum")),
        residual_(bytes()),
        weight_(static_cast<std::size_t>(p.hidden) * size_of(type)),
        x_(bytes()),
        out_(bytes()),
        right_x_(2 * bytes()),
        right_out_(2 * bytes()),
        scratch_(64),
        library_(bulk::communicator_of(w)) {
    fill_exact(weight_.data(), p.hidden, type, 4, stream);
    gpu::load_matrix_kernels();
    compute_reference(stream);
  }

  /// all_reduce_norm with `phases` phases; 0: the number that untax chooses.
  [[nodiscard]] rank_run fused(int phases) {
    auto op = std::make_shared<all_reduce_norm>(world_, p_, operator_options{.phases = phases});
    const norm_results to = op->result();
    std::string why = op->explain();
    const norm_inputs inputs{view(in_->local()), view(residual_.data()), weight_.data()};
    return {[op = std::move(op), inputs](stream_ref s) { op->run(inputs, s); }, to.x, to.out,
            std::move(why)};
  }
  [[nodiscard]] rank_run sum(bool direct) {
    auto op = std::make_shared<all_reduce>(world_, all_reduce_problem{count_, type},
                                           collective_options{.direct = direct});
    const const_array_view in{in_->local(), type, count_};
    const array_view out{sum_->local(), type, count_};
    std::string why = op->explain();
    return {[op = std::move(op), in, out](stream_ref s) { op->run(in, out, s); }, nullptr, nullptr,
            std::move(why)};
  }
  /// NCCL's all-reduce and, with `normalises`, the kernel after it.
  [[nodiscard]] rank_run library(bool normalises) {
    const auto run = [this, normalises](stream_ref s) {
      library_->all_reduce(in_->local(), sum_->local(), count_, type, reduction::sum, s);
      if (normalises)
        add_and_normalise(sum_->local(), residual_.data(), weight_.data(), x_.data(), out_.data(),
                          p_.tokens, p_.hidden, p_.epsilon, static_cast<cudaStream_t>(s.handle));
    };
    if (!normalises) return {run, nullptr, nullptr, {}};
    return {run, x_.data(), out_.data(), "NCCL's all-reduce, then a kernel that normalises"};
  }

  /// Poisons the results, calls `launch`, and returns the relative error against sums, which are
  /// exact, and rows that were normalised in fp64: infinity if sums differ. Waits.
  [[nodiscard]] double error_of(const rank_run& run, cudaStream_t stream,
                                const std::function<void()>& launch) {
    gpu::fill_nan(run.x, bytes(), stream);
    gpu::fill_nan(run.out, bytes(), stream);
    gpu::require(cudaStreamSynchronize(stream), "poisoning results");
    world_.barrier();
    launch();
    gpu::require(cudaStreamSynchronize(stream), "running");
    // Rows of out are computed in fp32, and rounded once.
    return std::max(compared(run.x, right_x_, 0, stream),
                    compared(run.out, right_out_, roundoff_of(type) + arithmetic_share, stream));
  }

 private:
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(count_) * size_of(type);
  }
  [[nodiscard]] const_matrix view(const void* data) const {
    return {data, type, p_.tokens, p_.hidden};
  }
  [[nodiscard]] double compared(const void* is, const device_buffer& should, double share,
                                cudaStream_t stream) {
    deviation found(norm_tolerance);
    found.add(gpu::compare(view(is), {should.data(), dtype::f32, p_.tokens, p_.hidden}, share, 0,
                           scratch_.data(), stream),
              static_cast<double>(count_), 0);
    return found.relative_error();
  }
  /// Fills the residual and this rank's input, and makes the reference from the inputs of all
  /// ranks.
  void compute_reference(cudaStream_t stream) {
    auto* const sums = static_cast<float*>(right_x_.data());
    gpu::require(cudaMemsetAsync(sums, 0, 2 * bytes(), stream), "clearing sums");
    const auto add_part = [&](void* to, std::uint32_t seed) {
      fill_exact(to, count_, type, seed, stream);
      add_to(sums, to, count_, stream);
    };
    const auto seed_of = [](int rank) { return static_cast<std::uint32_t>(977 * rank + 5); };
    for (int rank = 0; rank < world_.size(); ++rank)
      if (rank != world_.rank()) add_part(x_.data(), seed_of(rank));
    add_part(in_->local(), seed_of(world_.rank()));
    add_part(residual_.data(), 3);
    normalise_in_fp64(sums, weight_.data(), static_cast<float*>(right_out_.data()), p_.tokens,
                      p_.hidden, p_.epsilon, stream);
  }

  world& world_;
  all_reduce_norm_problem p_;
  std::int64_t count_;
  owned_symmetric<std::byte> in_;
  owned_symmetric<std::byte> sum_;
  device_buffer residual_;
  device_buffer weight_;
  device_buffer x_;
  device_buffer out_;
  device_buffer right_x_;  ///< fp32, as the next vector
  device_buffer right_out_;
  device_buffer scratch_;
  std::shared_ptr<bulk::communicator> library_;
};

class suite {
 public:
  suite(const norm_suite_options& options, gpu_team& team)
      : options_(options),
        team_(team),
        work_(static_cast<std::size_t>(team.size())),
        communicators_(work_.size()) {
    // The communicator is kept here, so that all problems share it.
    team.together([&](world& w) { communicators_[place(w)] = bulk::communicator_of(w); });
  }
  suite(const suite&) = delete;
  suite& operator=(const suite&) = delete;
  ~suite() {
    team_.together([&](world& w) { communicators_[place(w)].reset(); });
  }

  norm_row measure(std::int64_t tokens, std::int64_t hidden) {
    const all_reduce_norm_problem p{.tokens = tokens, .hidden = hidden, .type = type};
    team_.together([&](world& w) {
      work_[place(w)] = std::make_unique<norm_work>(w, p, team_.stream_of(w.rank()));
    });
    norm_row row{tokens, hidden, {}};
    variants_.clear();
    add(row, library_graph, [](norm_work& at) { return at.library(true); });
    add(
        row, library_eager, [](norm_work& at) { return at.library(true); }, true);
    add(row, norm_fused, [](norm_work& at) { return at.fused(0); });
    add(row, norm_one_phase, [](norm_work& at) { return at.fused(1); });
    add(row, norm_two_phases, [](norm_work& at) { return at.fused(2); });
    add(row, sum_alone, [](norm_work& at) { return at.sum(false); });
    add(row, direct_sum_alone, [](norm_work& at) { return at.sum(true); });
    add(row, library_sum_alone, [](norm_work& at) { return at.library(false); });
    time(row);
    team_.together([&](world& w) {  // operators end together
      for (variant& v : variants_) v.runs[place(w)] = {};
      work_[place(w)].reset();
    });
    variants_.clear();
    return row;
  }

 private:
  struct variant {
    std::vector<rank_run> runs;
    benchmark_case it;
    std::size_t figure = 0;
  };

  static std::size_t place(const world& w) { return static_cast<std::size_t>(w.rank()); }

  void add(norm_row& row, const char* label, const std::function<rank_run(norm_work&)>& make,
           bool eager = false) {
    variant v{std::vector<rank_run>(work_.size()), {}, row.figures.size()};
    team_.together([&](world& w) { v.runs[place(w)] = make(*work_[place(w)]); });
    v.it.eager = eager;
    v.it.run = [this, at = variants_.size()](int rank, int /*i*/, cudaStream_t stream) {
      variants_[at].runs[static_cast<std::size_t>(rank)].run(stream);
    };
    pattern_figure figure;
    figure.by = label;
    figure.explanation = v.runs.front().explanation;
    row.figures.push_back(std::move(figure));
    variants_.push_back(std::move(v));
  }

  void time(norm_row& row) {
    const double bytes = static_cast<double>(row.tokens * row.hidden) * size_of(type);
    const int times = bulk::runs_in_graph(bytes / 2e11 + 5e-6);
    std::vector<benchmark_case*> cases;
    for (variant& v : variants_) cases.push_back(&v.it);
    capture(team_, cases, times);
    verify(row, times);
    time_in_turn(team_, cases, times, options_.repeats);
    for (variant& v : variants_) row.figures[v.figure].time = v.it.time();
    verify(row, times);
  }

  void verify(norm_row& row, int times) {
    for (variant& v : variants_) {
      if (v.runs.front().x == nullptr) continue;
      std::vector<double> errors(work_.size());
      team_.together([&](world& w) {
        cudaStream_t stream = team_.stream_of(w.rank());
        errors[place(w)] = work_[place(w)]->error_of(v.runs[place(w)], stream,
                                                     [&] { v.it.launch(times, w.rank(), stream); });
        w.check();
      });
      double& known = row.figures[v.figure].error;
      known = std::max(known, *std::ranges::max_element(errors));
    }
  }

  const norm_suite_options& options_;
  gpu_team& team_;
  std::vector<std::unique_ptr<norm_work>> work_;
  std::vector<std::shared_ptr<bulk::communicator>> communicators_;
  std::vector<variant> variants_;
};

}  // namespace

norm_report run_norm_suite(const norm_suite_options& options) {
  constexpr int most_ranks = 8;
  gpu_team team(options.ranks, heap_for(options, options.ranks == 0 ? most_ranks : options.ranks));
  norm_report report{team.size(), type, team.device_name(), bulk::nccl().text, {}};
  suite measured(options, team);
  for (const std::int64_t hidden : options.hidden) {
    for (const std::int64_t tokens : options.tokens) {
      report.rows.push_back(measured.measure(tokens, hidden));
      if (options.progress) options.progress();
    }
  }
  return report;
}

}  // namespace untax::bench
