#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/flash_attention/flash_attention.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/flash_attention/backend.hpp"

namespace untax {
namespace {

gpu::flash_shape shape_of(const flash_attention_problem& p) {
  return {.batch = static_cast<int>(p.batch),
          .heads = static_cast<int>(p.heads),
          .kv_heads = static_cast<int>(p.kv_heads),
          .head_dim = static_cast<int>(p.head_dim),
          .queries = static_cast<int>(p.queries),
          .keys = static_cast<int>(p.keys),
          .causal = p.causal,
          .scale = p.scale,
          .type = p.type};
}

/// A single row may have any stride, but TMA takes only multiples of 16 bytes.
std::int64_t stride_of(const const_matrix& m) { return m.rows > 1 ? m.stride : m.cols; }

/// The backend on the GPU of a rank, which is the current one.
class device_backend final : public flash_attention_backend {
 public:
  device_backend(world& w, const flash_attention_problem& problem, order::attention_order order)
      : rank_(w.rank()), arguments_(flash_attention_name, w), runner_(shape_of(problem), order) {}

  void run(const flash_attention_operands& o, stream_ref given) override {
    arguments_.require_rows("q", o.q, bytes_at_once);
    arguments_.require_rows("keys", o.keys, bytes_at_once);
    arguments_.require_rows("values", o.values, bytes_at_once);
    arguments_.require_rows("out", as_const(o.out), bytes_at_once);
    arguments_.require("log_sums", o.log_sums);
    arguments_.require("query_begins", o.query_begins);
    arguments_.require("key_begins", o.key_begins);
    const stream_ref stream = own_.unless(given);
    runner_.run({.query_rows = static_cast<int>(o.q.rows),
                 .key_rows = static_cast<int>(o.keys.rows),
                 .queries = o.q.data,
                 .keys = o.keys.data,
                 .values = o.values.data,
                 .out = o.out.data,
                 .log_sums = o.log_sums,
                 .query_begins = o.query_begins,
                 .key_begins = o.key_begins,
                 .queries_stride = stride_of(o.q),
                 .keys_stride = stride_of(o.keys),
                 .values_stride = stride_of(o.values),
                 .out_stride = o.out.stride},
                stream);
    if (given.handle == nullptr)
      own_.wait(fmt::format("rank {}: {}: the kernel failed", rank_, flash_attention_name));
  }

 private:
  /// The bytes of one access by TMA, and of one store.
  static constexpr std::size_t bytes_at_once = 16;

  int rank_;
  device_arguments arguments_;
  own_stream own_;
  gpu::flash_runner runner_;
};

}  // namespace

process_owned<flash_attention_backend> device_flash_attention(
    world& w, const flash_attention_problem& problem, order::attention_order order) {
  w.use_device();
  return make_process_owned<device_backend>(w, problem, order);
}

}  // namespace untax
