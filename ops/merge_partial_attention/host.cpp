#include <vector>

#include "engines/host/engine.hpp"
#include "ops/common/arguments.hpp"
#include "ops/merge_partial_attention/backend.hpp"
#include "ops/merge_partial_attention/packing.hpp"
#include "ops/merge_partial_attention/planning.hpp"
#include "ops/merge_partial_attention/protocol.hpp"

namespace untax {
namespace {

host::engine_options engine_options_of(const merge_partial_attention_options& options) {
  return {std::string(merge_partial_attention_name), dtype::f32, dtype::f32, options.launch,
          options.faults};
}

host::engine engine_for(world& w, const merge_partial_attention_problem& problem,
                        const merge_partial_attention_plan& plan,
                        const merge_partial_attention_options& options) {
  if (!options.varying_tokens) {
    return {w, program(merge_partial_attention_protocol(problem, plan)),
            engine_options_of(options)};
  }
  const auto at = [problem, plan](std::int64_t tokens, const auto& use) {
    merge_partial_attention_problem of_run = problem;
    of_run.tokens = tokens;
    use(merge_partial_attention_protocol(of_run, plan));
  };
  return {w, row_program({problem.tokens}, 1, at), engine_options_of(options)};
}

std::size_t elements(std::int64_t heads, const merge_partial_attention_problem& problem) {
  return static_cast<std::size_t>(problem.tokens * heads * packed_width(problem));
}

/// Parts are packed in fp32, because the engine merges rows of one type, statistics included.
class host_merge final : public merge_backend {
 public:
  host_merge(world& w, const merge_partial_attention_problem& problem,
             const merge_partial_attention_plan& plan,
             const merge_partial_attention_options& options)
      : problem_(problem),
        rank_(plan.rank),
        varying_(options.varying_tokens),
        parts_(elements(problem.heads, problem)),
        merged_(elements(merge_partial_attention::heads_of(problem, plan.world, plan.rank).size,
                         problem)),
        engine_(engine_for(w, problem, plan, options)) {}

  void run(const const_matrix& partial_o, const const_matrix& partial_lse, const matrix& out,
           const matrix& lse, stream_ref stream) override {
    argument_check{merge_partial_attention_name, rank_}.no_stream(stream);
    pack_partials(problem_, partial_o, partial_lse, parts_);
    const std::int64_t width = packed_width(problem_);
    host::operand_table operands;
    const auto bind = [&](operand role, std::vector<float>& memory, std::int64_t rows) {
      operands[role] = local_operand({memory.data(), dtype::f32, rows, width}, 0);
    };
    bind(operand::a, parts_, partial_o.rows);
    bind(operand::c, merged_, out.rows);
    if (varying_) {
      engine_.run(operands, partial_lse.rows);
    } else {
      engine_.run(operands);
    }
    unpack_partials(problem_, merged_, out, lse);
  }

 private:
  merge_partial_attention_problem problem_;
  int rank_;
  bool varying_;
  std::vector<float> parts_;
  std::vector<float> merged_;
  host::engine engine_;
};

}  // namespace

process_owned<merge_backend> merge_on_host(world& w, const merge_partial_attention_problem& problem,
                                           const merge_partial_attention_plan& plan,
                                           const merge_partial_attention_options& options) {
  return make_process_owned<host_merge>(w, problem, plan, options);
}

}  // namespace untax
