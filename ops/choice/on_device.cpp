#include "ops/choice/on_device.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engines/bulk/slab_gather.hpp"

#include "ops/choice/gemm_timer.hpp"
#include "ops/choice/measured_on.hpp"
#include "ops/common/planning.hpp"
#include "ops/common/row_table.hpp"

namespace untax {
namespace {

/// All types of 16 bits take equally long.
tuned_problem tuned(const operator_entry& entry, const gemm_problem& p, int ranks) {
  const bool wide = entry.sums_to && p.partials == dtype::f32;
  return {.operator_name = entry.name,
          .gather = p.gather,
          .ranks = ranks,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .partials = wide ? dtype::f32 : dtype::bf16};
}

/// `plans.by_rows` are the plans of a capacity if rows vary, else one plan.
made_on_device made_of(world& w, const operator_entry& entry, chosen_operators plans, bool varies) {
  const operator_up_to& most = plans.by_rows.back();
  made_on_device device;
  device.how = most.op->how();
  device.explanation = most.op->text();
  if (varies) {
    device.explanation = fmt::format("any number of rows up to {} by {} plans; with the most: {}",
                                     most.rows, plans.by_rows.size(), device.explanation);
  }
  if (!plans.reason.empty()) device.explanation += "; " + plans.reason;
  device.runner = make_process_owned<device_runner>(w, entry.name, std::move(plans.by_rows), varies,
                                                    std::move(plans.libraries));
  w.agree(entry.name, fmt::format("made {}", name_of(device.how)));
  return device;
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
  const operator_maker make_in = [&](pattern how, std::int64_t rows) {
    if (how == pattern::bulk_library) {
      refuse_invariant(entry.name, w.rank(), options);
      return make.by_library();
    }
    operator_options chosen = options;
    chosen.how = how;
    return make.by_kernels(rows, chosen);
  };
  const bool planned_once = !options.varying_rows || options.how == pattern::bulk_library;
  const std::vector<std::int64_t> ends =
      planned_once ? std::vector{problem.m} : row_ends(problem.m);
  if (options.how != pattern::automatic) {
    chosen_operators asked;
    asked.by_rows = operators_of(ends.size(), [&](std::size_t i, auto& operators) {
      operators.push_back({ends[i], make_in(options.how, ends[i])});
    });
    return made_of(w, entry, std::move(asked), options.varying_rows);
  }
  chosen_operators chosen =
      make_chosen(w, tuned(entry, problem, w.size()), ends, device_name_here(),
                  {.make = make_in,
                   .timer = [&] { return gemm_timer(w, entry, problem, result); },
                   .usual = make.usual,
                   .libraries = [&]() -> std::shared_ptr<const void> {
                     return w.size() > 1 ? bulk::communicator_of(w) : nullptr;
                   }});
  return made_of(w, entry, std::move(chosen), options.varying_rows);
}

}  // namespace untax
