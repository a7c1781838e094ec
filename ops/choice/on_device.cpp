#include "ops/choice/on_device.hpp"

#include <utility>

#include <fmt/format.h>

#include "ops/choice/device_name.hpp"
#include "ops/choice/gemm_timer.hpp"
#include "ops/common/planning.hpp"
#include "ops/common/row_operators.hpp"

namespace untax {
namespace {

made_on_device made_of(world& w, const operator_entry& entry, std::unique_ptr<device_operator> op) {
  made_on_device made;
  made.how = op->how();
  made.explanation = op->text();
  made.runner = make_process_owned<device_runner>(w, entry.name, std::move(op));
  w.agree(entry.name, fmt::format("made {}", name_of(made.how)));
  return made;
}

}  // namespace

protocol_plan plan_on_device(world& w, const operator_entry& entry, const gemm_problem& problem,
                             const std::string& text, const operator_options& options) {
  require_device_problem(entry.name, w.rank(), problem.type, problem.n, problem.k);
  const protocol_plan plan = plan_for_device(w, options);
  agree_on_plan(w, entry.name, text, plan);
  w.use_device();
  return plan;
}

made_on_device make_on_device(world& w, const operator_entry& entry, const gemm_problem& problem,
                              const operator_options& options, const operator_makers& make,
                              void* result) {
  const auto make_one = [&](std::int64_t rows, const timer_maker& timer) {
    const operator_maker make_in = [&](pattern how) {
      if (how == pattern::bulk_library) {
        refuse_in_library(entry.name, w.rank(), options);
        return make.by_library();
      }
      operator_options chosen = options;
      chosen.how = how;
      return make.by_kernels(rows, chosen);
    };
    if (options.how != pattern::automatic) return make_in(options.how);
    const tuned_problem tuned{entry.name, problem.gather, w.size(), rows, problem.n, problem.k};
    return make_chosen(w, tuned, device_name_here(), make_in, timer);
  };
  if (!options.varying_rows)
    return made_of(w, entry,
                   make_one(problem.m, [&] { return gemm_timer(w, entry, problem, result); }));
  return made_of(w, entry, std::make_unique<row_operators>(problem.m, [&](std::int64_t rows) {
                   return make_one(rows, [] { return operator_timer(); });
                 }));
}

}  // namespace untax
