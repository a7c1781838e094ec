#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/host/attention.hpp"
#include "engines/host/engine.hpp"
#include "ops/common/arguments.hpp"
#include "ops/flash_decode/backend.hpp"
#include "ops/flash_decode/planning.hpp"
#include "ops/flash_decode/protocol.hpp"

namespace untax {
namespace {

host::tile_memory tile_of(const const_matrix& m) {
  const host::operand_memory memory = local_operand(m, 0);
  return {memory.base, memory.stride, memory.type};
}

class host_backend final : public attention_backend {
 public:
  host_backend(world& w, const flash_decode_problem& problem, const flash_decode_plan& plan,
               const flash_decode_options& options)
      : problem_(problem),
        rank_(w.rank()),
        engine_(w, program(flash_decode_protocol(problem, plan)),
                {std::string(flash_decode_name), problem.partials, dtype::f32, options.launch,
                 options.faults}) {}

  void run(const const_matrix& q, const attention_shard& shard, const matrix& out,
           stream_ref stream) override {
    argument_check{flash_decode_name, rank_}.no_stream(stream);
    check(shard);
    const host::attention_cache cache{.keys = tile_of(shard.keys),
                                      .values = tile_of(shard.values),
                                      .lengths = shard.lengths,
                                      .page_table = shard.page_table,
                                      .capacity = problem_.keys,
                                      .page_size = problem_.page_size,
                                      .pages = pages_of_sequence(problem_),
                                      .kv_heads = problem_.kv_heads,
                                      .head_dim = problem_.head_dim,
                                      .scale = scale_of(problem_),
                                      .logit_cap = problem_.logit_cap};
    host::operand_table operands;
    operands.cache = &cache;
    operands[operand::a] = local_operand(q, rank_);
    operands[operand::c] = local_operand(as_const(out), rank_);
    engine_.run(operands);
  }

 private:
  /// Checks values that on a GPU cannot be checked before a kernel runs.
  void check(const attention_shard& shard) const {
    const auto refuse = [&](const std::string& text) {
      throw error(errc::invalid_argument,
                  fmt::format("rank {}: {}: {}", rank_, flash_decode_name, text));
    };
    for (std::int64_t b = 0; b < problem_.batch; ++b) {
      const std::int32_t length = shard.lengths[b];
      if (length < 0 || length > problem_.keys) {
        refuse(fmt::format("lengths[{}] is {}; it has to be between 0 and {}", b, length,
                           problem_.keys));
      }
      if (problem_.page_size == 0) continue;
      for (std::int64_t i = 0; i < ceil_div<std::int64_t>(length, problem_.page_size); ++i) {
        const std::int32_t page = shard.page_table[b * pages_of_sequence(problem_) + i];
        if (page >= 0 && page < problem_.pages) continue;
        refuse(fmt::format("page_table[{}, {}] is {}; it has to be between 0 and {}", b, i, page,
                           problem_.pages - 1));
      }
    }
  }

  flash_decode_problem problem_;
  int rank_;
  host::engine engine_;
};

}  // namespace

process_owned<attention_backend> host_attention(world& w, const flash_decode_problem& problem,
                                                const flash_decode_plan& plan,
                                                const flash_decode_options& options) {
  return make_process_owned<host_backend>(w, problem, plan, options);
}

}  // namespace untax
