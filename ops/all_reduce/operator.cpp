#include <fmt/format.h>

#include <utility>

#include <untax/ops/collectives.hpp>

#include "ops/all_reduce/protocol.hpp"
#include "ops/collectives_common/counted.hpp"
#include "ops/collectives_common/device_code.hpp"

namespace untax {
namespace {

gpu::collective_kernel kernels_of(const all_reduce_problem& problem, const collective_plan& plan) {
  return reduction_code(problem.count, problem.type, problem.how, reduce_target::everywhere, plan);
}

}  // namespace

all_reduce::all_reduce(world& w, const all_reduce_problem& problem,
                       const collective_options& options)
    : collective(w, need_of(problem, w.size()), options), problem_(problem) {
  const std::string text = fmt::format("count {}, {}", problem.count, name_of(problem.how));
  if (options.varying_count) {
    start(w, text, counted(w, problem, options, kernels_of), options);
    return;
  }
  with_protocol_for(problem_, plan(), [&](auto protocol) {
    start(
        w, text, program(std::move(protocol)), [&] { return kernels_of(problem_, plan()); },
        options);
  });
}

std::int64_t all_reduce::in_count(const all_reduce_problem& problem, int /*world*/, int /*rank*/) {
  return problem.count;
}

std::int64_t all_reduce::out_count(const all_reduce_problem& problem, int /*world*/, int /*rank*/) {
  return problem.count;
}

void all_reduce::run(const const_array_view& in, const array_view& out, stream_ref stream) {
  const std::int64_t count = count_of_run("out", out.count, problem_.count);
  check("in", in, count);
  check("out", as_const(out), count);
  const collective_plan& how = plan_of_run(count);
  const bool others_read = how.how == pattern::fused_specialized || how.direct;
  check_apart(in, out, {!others_read || how.phases == 2 || how.world == 1, 0});
  carry_out(in, out, count, stream);
}

}  // namespace untax
