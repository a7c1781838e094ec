#include <memory>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/launch/common_end.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/norm/norm_rows.hpp"
#include "engines/gpu/rooms/operator_host.hpp"
#include "ops/all_reduce_norm/device.hpp"
#include "ops/all_reduce_norm/device_plan.hpp"
#include "ops/all_reduce_norm/planning.hpp"

namespace untax {
namespace {

static_assert(gpu::most_normed == most_hidden);

class launched_norm final : public device_norm {
 public:
  launched_norm(world& w, const all_reduce_norm_problem& problem, const norm_plan& planned,
                const shown_results& results, gpu::room_pool* rooms)
      : end_(w),
        problem_(problem),
        own_(results.own),
        host_(w, all_reduce_norm_name, {.own = true}),
        kernel_(gpu::norm_kernel(problem.type, planned.how)),
        // An even number, for pairs (operator_launcher::in_pairs); the last one may have no rows.
        blocks_(w.ranks_per_gpu() > 1 ? (planned.blocks + 1) / 2 * 2 : planned.blocks) {
    host_.launcher().require_at_most(gpu::most_ranks);
    const gpu::norm_rows& how = planned.how;
    given_.how = how;
    given_.run = host_.allocate(
        {.threads = gpu::norm_threads,
         .inbox = {{static_cast<std::size_t>(how.inbox_bytes()), gpu::room_content::words}},
         .counters = static_cast<std::size_t>(how.counters()),
         .own_words = blocks_ + 1},
        rooms);
    given_.run.between = results.between;
    given_.done = given_.run.epochs + blocks_;
    given_.type = problem.type;
    given_.output = problem.output;
    given_.epsilon = problem.epsilon;
    host_.launcher().prepare(kernel_, 0);
    host_.launcher().dry_run([&](cudaStream_t on) {
      gpu::norm_arguments dry = given_;
      dry.run.launch = -1;
      launch(dry, on);
    });
  }

  void set_tokens(std::int64_t tokens) override {
    problem_.tokens = tokens;
    given_.how.tokens = static_cast<int>(tokens);
  }

  void run(const norm_inputs& inputs, const norm_results& results, stream_ref stream) override {
    host_.run(stream, [&](gpu::whole_run& run, cudaStream_t on) {
      const norm_results& to = given_.how.passes_on ? own_ : results;
      given_.run.in = static_cast<const std::byte*>(inputs.in.data);
      given_.residual = inputs.residual.data;
      given_.weight = inputs.weight;
      given_.scale = inputs.scale;
      given_.x = to.x;
      given_.out = to.out;
      given_.scales = to.scales;
      run([&] { launch(given_, on); });
      const gpu::operator_launcher& launcher = host_.launcher();
      const auto elements = static_cast<std::size_t>(problem_.tokens * problem_.hidden);
      launcher.copy_result(results.x, to.x, elements * size_of(problem_.type), run, on);
      launcher.copy_result(results.out, to.out, elements * normed_size(problem_), run, on);
      if (problem_.output == norm_output::e4m3_per_token)
        launcher.copy_result(results.scales, to.scales,
                             static_cast<std::size_t>(problem_.tokens) * sizeof(float), run, on);
    });
  }

 private:
  void launch(const gpu::norm_arguments& given, cudaStream_t on) const {
    gpu::norm_arguments passed = given;
    void* arguments[] = {&passed};
    host_.launcher().launch({.kernel = kernel_,
                             .blocks = blocks_,
                             .threads = gpu::norm_threads,
                             .early = true,
                             .together = given.how.spread},
                            on, arguments);
  }
  gpu::common_end end_;
  all_reduce_norm_problem problem_;
  norm_results own_;
  gpu::norm_arguments given_;
  gpu::operator_host host_;
  const void* kernel_;
  int blocks_;
};

norm_plan plan_of(const world& w, const all_reduce_norm_problem& problem, int phases) {
  return norm_plan_of(problem, w.size(), w.rank(), phases, gpu::num_sms_of(w));
}

/// A run uses the first operator of a table that was made for at least as many tokens.
class norm_for_any_tokens final : public device_norm {
 public:
  norm_for_any_tokens(world& w, const all_reduce_norm_problem& problem, const row_plans& plans,
                      const shown_results& results)
      : rooms_(gpu::make_room_pool(w, all_reduce_norm_name)),
        table_(plans.ends(),
               [&](std::int64_t tokens) {
                 all_reduce_norm_problem fewer = problem;
                 fewer.tokens = tokens;
                 return std::make_unique<launched_norm>(
                     w, fewer, plan_of(w, fewer, plans.at(tokens).phases), results, rooms_.get());
               }),
        now_(table_.at(problem.tokens).get()) {}

  void set_tokens(std::int64_t tokens) override {
    now_ = table_.at(tokens).get();
    now_->set_tokens(tokens);
  }
  void run(const norm_inputs& inputs, const norm_results& results, stream_ref stream) override {
    now_->run(inputs, results, stream);
  }

 private:
  std::shared_ptr<gpu::room_pool> rooms_;
  row_table<std::unique_ptr<launched_norm>> table_;
  launched_norm* now_;
};

}  // namespace

process_owned<device_norm> all_reduce_norm_on_device(world& w,
                                                     const all_reduce_norm_problem& problem,
                                                     int phases, const shown_results& results) {
  return make_process_owned<launched_norm>(w, problem, plan_of(w, problem, phases), results,
                                           nullptr);
}

process_owned<device_norm> all_reduce_norm_for_any_tokens(world& w,
                                                          const all_reduce_norm_problem& problem,
                                                          const row_plans& plans,
                                                          const shown_results& results) {
  return make_process_owned<norm_for_any_tokens>(w, problem, plans, results);
}

}  // namespace untax
