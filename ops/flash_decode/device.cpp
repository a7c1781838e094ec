#include <fmt/format.h>

#include <optional>

#include <untax/core/error.hpp>
#include <untax/ops/collectives.hpp>

#include "engines/bulk/communicator.hpp"
#include "engines/gpu/attention/attention_runner.hpp"
#include "engines/gpu/launch/whole_run.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/flash_decode/backend.hpp"
#include "ops/flash_decode/planning.hpp"

namespace untax {
namespace {

gpu::attention_sink sink_of(const flash_decode_plan& plan) {
  if (is_bulk(plan.how) || plan.splits > 0) return gpu::attention_sink::rows;
  return plan.how == pattern::producer_consumer ? gpu::attention_sink::outbox
                                                : gpu::attention_sink::ranks;
}

gpu::attention_shape shape_of(const flash_decode_problem& problem, const flash_decode_plan& plan) {
  gpu::attention_shape shape = device_shape(problem);
  shape.parts = plan.splits;
  return shape;
}

/// The backend on the GPU of a rank. In the bulk patterns partial results are gathered between two
/// kernels: by NCCL, or by all_gather. Splits of the only rank are combined likewise.
class device_backend final : public attention_backend {
 public:
  device_backend(world& w, const flash_decode_problem& problem, const flash_decode_plan& plan)
      : world_(&w.stable_view()),
        arguments_(flash_decode_name, w),
        shape_(shape_of(problem, plan)),
        plan_(plan),
        shard_(shape_.rows() * shape_.words()),
        engine_(w, std::string(flash_decode_name), shape_, sink_of(plan), plan.workers) {
    if (plan.splits > 0) return;
    if (plan.how == pattern::bulk_library) library_.emplace(w);
    if (plan.how == pattern::bulk_synchronous)
      gather_.emplace(w, all_gather_problem{shard_ * plan.world, dtype::f32});
  }

  void run(const const_matrix& q, const attention_shard& shard, const matrix& out,
           stream_ref given) override {
    arguments_.require_rows("q", q, 4);
    arguments_.require_rows("keys", shard.keys, 16);
    arguments_.require_rows("values", shard.values, 16);
    arguments_.require_rows("out", as_const(out), 8);
    arguments_.require("lengths", shard.lengths);
    arguments_.require("page_table", shard.page_table);
    const gpu::attention_operands operands{.queries = q.data,
                                           .keys = shard.keys.data,
                                           .values = shard.values.data,
                                           .out = out.data,
                                           .queries_stride = q.stride,
                                           .keys_stride = shard.keys.stride,
                                           .values_stride = shard.values.stride,
                                           .out_stride = out.stride,
                                           .lengths = shard.lengths,
                                           .page_table = shard.page_table};
    const stream_ref stream = engine_.stream_or_own(given);
    gpu::whole_run all(*world_);
    all([&] { engine_.attend(operands, stream); });
    if (library_ || gather_) all([&] { gather(stream); });
    if (sink_of(plan_) == gpu::attention_sink::rows) {
      all([&] { engine_.combine(operands, stream); });
    }
    if (given.handle == nullptr) engine_.finish(stream);
  }

 private:
  /// The gather is in place: a rank's own part is already in its slot.
  void gather(stream_ref stream) {
    std::uint32_t* const all = engine_.gathered();
    std::uint32_t* const mine = all + plan_.rank * shard_;
    if (library_) {
      library_->all_gather(mine, all, shard_, dtype::f32, stream);
    } else {
      gather_->run({mine, dtype::f32, shard_}, {all, dtype::f32, shard_ * plan_.world}, stream);
    }
  }

  world* world_;
  device_arguments arguments_;
  gpu::attention_shape shape_;
  flash_decode_plan plan_;
  std::int64_t shard_;
  gpu::attention_runner engine_;
  std::optional<bulk::communicator> library_;
  std::optional<all_gather> gather_;
};

}  // namespace

gpu::attention_shape device_shape(const flash_decode_problem& p) {
  return {.batch = static_cast<int>(p.batch),
          .kv_heads = static_cast<int>(p.kv_heads),
          .group = static_cast<int>(p.heads / p.kv_heads),
          .head_dim = static_cast<int>(p.head_dim),
          .keys = p.keys,
          .page_size = static_cast<int>(p.page_size),
          .by_page = order::divider(static_cast<int>(p.page_size)),
          .pages = pages_of_sequence(p),
          .scale = scale_of(p),
          .logit_cap = p.logit_cap,
          .type = p.type,
          .partials = p.partials};
}

process_owned<attention_backend> device_attention(world& w, const flash_decode_problem& problem,
                                                  const flash_decode_plan& plan) {
  return make_process_owned<device_backend>(w, problem, plan);
}

}  // namespace untax
