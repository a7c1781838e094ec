#include <cstring>

#include <fmt/format.h>

#include <untax/ops/all_reduce_norm.hpp>

#include "engines/host/engine.hpp"
#include "engines/host/normalise.hpp"
#include "ops/all_reduce_norm/device.hpp"
#include "ops/all_reduce_norm/planning.hpp"
#include "ops/all_reduce_norm/protocol.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/common/device_runner.hpp"
#include "ops/common/row_plans.hpp"
#include "ops/common/run_turns.hpp"

namespace untax {
namespace {

constexpr auto name = all_reduce_norm_name;

all_reduce_norm_problem with_tokens(all_reduce_norm_problem problem, std::int64_t tokens) {
  problem.tokens = tokens;
  return problem;
}

}  // namespace

all_reduce_norm::all_reduce_norm(world& w, const all_reduce_norm_problem& problem,
                                 const operator_options& options)
    : world_(&w.stable_view()), problem_(problem), turns_(make_process_owned<run_turns>(w, name)) {
  auto planned = plan_norm(w, problem, options);
  plan_ = planned.plan;
  explanation_ = std::move(planned.explanation);
  const std::string text =
      fmt::format("tokens {}, hidden {}, {}, output {}, epsilon {}", problem.tokens, problem.hidden,
                  name_of(problem.type), name_of(problem.output), problem.epsilon);
  if (options.varying_rows) {
    plans_ =
        std::make_shared<const row_plans>(number_ends(problem.tokens), [&](std::int64_t tokens) {
          return plan_norm(w, with_tokens(problem, tokens), options).plan;
        });
    explanation_ += told_of(*plans_);
    agree_on_plans(w, name, text, *plans_);
  } else {
    agree_on_plan(w, name, text, plan_);
  }
  if (w.memory() == memory_kind::cuda) w.use_device();
  own_ = w.allocate_owned<std::byte>(room_of(problem).bytes, fmt::format("{} results", name));
  if (w.memory() == memory_kind::cuda) {
    const shown_results results{own_results(), own_->span()};
    usable_ = std::make_unique<device_arguments>(name, w);
    device_ = plans_ ? all_reduce_norm_for_any_tokens(w, problem, *plans_, results)
                     : all_reduce_norm_on_device(w, problem, plan_.phases, results);
    w.agree(name, "made");
    return;
  }
  const host::engine_options how{std::string(name), problem.type,   problem.type,
                                 options.launch,    options.faults, problem.type};
  if (!plans_) {
    engine_ = make_process_owned<host::engine>(
        w, program(all_reduce_norm_protocol(problem_, plan_)), how);
    return;
  }
  const auto protocol = [problem](std::int64_t tokens, const protocol_plan& plan) {
    return all_reduce_norm_protocol(with_tokens(problem, tokens), plan);
  };
  engine_ = make_process_owned<host::engine>(w, programs_of(plans_, 1, protocol), how);
}

all_reduce_norm::all_reduce_norm(all_reduce_norm&&) noexcept = default;

all_reduce_norm& all_reduce_norm::operator=(all_reduce_norm&& other) noexcept {
  if (this == &other) return *this;
  end();
  world_ = other.world_;
  problem_ = other.problem_;
  tokens_ = other.tokens_;
  plan_ = other.plan_;
  explanation_ = std::move(other.explanation_);
  turns_ = std::move(other.turns_);
  plans_ = std::move(other.plans_);
  engine_ = std::move(other.engine_);
  device_ = std::move(other.device_);
  usable_ = std::move(other.usable_);
  own_ = std::move(other.own_);
  return *this;
}

all_reduce_norm::~all_reduce_norm() { end(); }

void all_reduce_norm::end() noexcept {
  // After an exception a rank does not wait for its kernels, which may still write into `own_`.
  if (device_ && world_->unwinding()) own_.abandon();
  engine_.reset();
  device_.reset();
}

norm_results all_reduce_norm::result() const {
  argument_check{name, plan_.rank}.is_whole(engine_ || device_);
  return own_results();
}

norm_results all_reduce_norm::own_results() const {
  const norm_room room = room_of(problem_);
  std::byte* own = own_->local();
  const bool has_scales = problem_.output == norm_output::e4m3_per_token;
  auto* scales = reinterpret_cast<float*>(own + room.scales);  // NOLINT(*-reinterpret-cast)
  return {own, own + room.out, has_scales ? scales : nullptr};
}

void all_reduce_norm::check(const norm_inputs& inputs, const norm_results& results,
                            std::int64_t tokens) const {
  const argument_check check{name, plan_.rank};
  const extent size{tokens, problem_.hidden};
  const auto rows_at = [&](const void* data) {
    return const_matrix(data, problem_.type, size.rows, size.cols);
  };
  check.matrix_of("in", inputs.in, size, problem_.type);
  check.matrix_of("residual", inputs.residual, size, problem_.type);
  const const_matrix weight(inputs.weight, problem_.type, 1, size.cols);
  check.matrix_of("weight", weight, {1, size.cols}, problem_.type);
  check.matrix_of("x", rows_at(results.x), size, problem_.type);
  const auto refuse = [&](const std::string& text) {
    throw error(errc::invalid_argument, fmt::format("rank {}: {}: {}", plan_.rank, name, text));
  };
  if (results.out == nullptr && size.rows > 0)
    refuse(fmt::format("out is null; it has to hold {} x {} elements", size.rows, size.cols));
  if (problem_.output == norm_output::e4m3_per_token && results.scales == nullptr && size.rows > 0)
    refuse(fmt::format("scales is null; it has to hold {} elements", size.rows));
  if (problem_.output == norm_output::e4m3 && !(inputs.scale > 0))
    refuse(fmt::format("scale is {}; it has to be positive", inputs.scale));
  const memory_range out(results.out,
                         static_cast<std::size_t>(size.rows * size.cols) * normed_size(problem_));
  const const_matrix x = rows_at(results.x);
  check.apart("in", inputs.in, x);
  check.apart("weight", weight, x);
  if (inputs.residual.data != results.x || inputs.residual.stride != size.cols)
    check.apart("residual, which is not x,", inputs.residual, x);
  const auto apart_from_all_inputs = [&](const memory_range& result) {
    check.apart("in", inputs.in, result);
    check.apart("residual", inputs.residual, result);
    check.apart("weight", weight, result);
    check.apart("x", x, result);
  };
  apart_from_all_inputs(out);
  if (problem_.output == norm_output::e4m3_per_token) {
    const memory_range scales(results.scales, static_cast<std::size_t>(size.rows) * sizeof(float));
    apart_from_all_inputs(scales);
    check.apart("out", out, scales);
  }
}

/// The kernel reads and writes 16 bytes at a time.
void all_reduce_norm::check_on_device(const norm_inputs& inputs,
                                      const norm_results& results) const {
  constexpr std::size_t bytes = 16;
  usable_->require_dense("in", inputs.in);
  usable_->require_dense("residual", inputs.residual);
  usable_->require("in", inputs.in.data, bytes);
  usable_->require("residual", inputs.residual.data, bytes);
  usable_->require("weight", inputs.weight, bytes);
  usable_->require("x", results.x, bytes);
  usable_->require("out", results.out, bytes);
  if (problem_.output == norm_output::e4m3_per_token)
    usable_->require("scales", results.scales, sizeof(float));
}

void all_reduce_norm::run(const norm_inputs& inputs, const norm_results& results,
                          stream_ref stream) {
  argument_check{name, plan_.rank}.is_whole(engine_ || device_);
  const std::int64_t tokens =
      rows_of_run(name, plan_.rank, "in", inputs.in.rows, problem_.tokens, plans_.get());
  check(inputs, results, tokens);
  (*turns_)(stream, [&] { take_turn(inputs, results, tokens, stream); });
}

void all_reduce_norm::take_turn(const norm_inputs& inputs, const norm_results& results,
                                std::int64_t tokens, stream_ref stream) {
  const norm_results own = own_results();
  const protocol_plan& plan = plans_ && tokens > 0 ? plans_->at(tokens) : plan_;
  const bool into_own = results.x == own.x && results.out == own.out &&
                        (own.scales == nullptr || results.scales == own.scales);
  const bool by_way_of_own = plan.phases == 2 && !into_own;
  const norm_results& at = by_way_of_own ? own : results;
  if (by_way_of_own) {
    // Peers write into `own` while this rank still reads its input.
    const argument_check apart{name, plan_.rank};
    const memory_range room(own.x, room_of(problem_).bytes);
    apart.apart("in", inputs.in, room);
    apart.apart("weight", const_matrix(inputs.weight, problem_.type, 1, problem_.hidden), room);
    // In its own x a rank reads only rows that it writes itself.
    if (inputs.residual.data != own.x || inputs.residual.stride != problem_.hidden)
      apart.apart("residual, which is not the operator's own x,", inputs.residual, room);
  }
  if (device_) {
    if (plans_ && tokens != tokens_) note_rows(*world_, name, tokens, stream);
    tokens_ = tokens;
    if (tokens == 0) return;
    check_on_device(inputs, results);
    if (plans_) device_->set_tokens(tokens);
    return device_->run(inputs, results, stream);
  }
  argument_check{name, plan_.rank}.no_stream(stream);
  const std::ptrdiff_t span = own_->span();
  host::norm_context norm;
  norm.residual = local_operand(inputs.residual, plan_.rank);
  norm.weight = local_operand({inputs.weight, problem_.type, 1, problem_.hidden}, plan_.rank);
  norm.normed = static_cast<std::byte*>(at.out);
  norm.normed_per_rank = norm.scales_per_rank = span;
  norm.scales = at.scales;
  norm.output = problem_.output;
  norm.scale = inputs.scale;
  norm.epsilon = problem_.epsilon;
  host::operand_table operands;
  operands.norm = &norm;
  operands[operand::a] = local_operand(inputs.in, plan_.rank);
  operands[operand::c] = local_operand({at.x, problem_.type, tokens, problem_.hidden}, plan_.rank);
  operands[operand::c].bytes_per_rank = span;
  if (plans_) {
    engine_->run(operands, tokens);
  } else {
    engine_->run(operands);
  }
  if (!by_way_of_own) return;
  const auto elements = static_cast<std::size_t>(tokens * problem_.hidden);
  std::memmove(results.x, own.x, elements * size_of(problem_.type));
  std::memmove(results.out, own.out, elements * normed_size(problem_));
  if (own.scales != nullptr)
    std::memmove(results.scales, own.scales, static_cast<std::size_t>(tokens) * sizeof(float));
}

}  // namespace untax
