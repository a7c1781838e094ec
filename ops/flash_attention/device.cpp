#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/flash_attention/flash_attention.hpp"
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

/// On the GPU of a rank, which is the current one.
class device_backend final : public flash_attention_backend {
 public:
  device_backend(world& w, const flash_attention_problem& problem, order::attention_order order)
      : rank_(w.rank()),
        reachable_(flash_attention_name, w.rank(), w.device()),
        runner_(shape_of(problem), order) {}

  void run(const flash_attention_operands& o, stream_ref given) override {
    require_rows("q", o.q);
    require_rows("keys", o.keys);
    require_rows("values", o.values);
    require_rows("out", as_const(o.out));
    reachable_.require(0, "q", o.q.data);
    reachable_.require(1, "keys", o.keys.data);
    reachable_.require(2, "values", o.values.data);
    reachable_.require(3, "out", o.out.data);
    reachable_.require(4, "log_sums", o.log_sums);
    reachable_.require(5, "query_begins", o.query_begins);
    reachable_.require(6, "key_begins", o.key_begins);
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
                 .queries_stride = o.q.stride,
                 .keys_stride = o.keys.stride,
                 .values_stride = o.values.stride,
                 .out_stride = o.out.stride},
                stream);
    if (given.handle == nullptr)
      own_.wait(fmt::format("rank {}: {}: the kernel failed", rank_, flash_attention_name));
  }

 private:
  /// What TMA reads, and stores of 16 bytes write.
  void require_rows(std::string_view what, const const_matrix& m) const {
    constexpr std::size_t bytes = 16;
    const auto at = reinterpret_cast<std::uintptr_t>(m.data);  // NOLINT(*-reinterpret-cast)
    const auto stride = static_cast<std::size_t>(m.stride) * size_of(m.type);
    if (m.empty() || (at % bytes == 0 && stride % bytes == 0)) return;
    throw error(
        errc::invalid_argument,
        fmt::format("rank {}: {}: {} lies at {} with {} bytes from row to row; on GPUs both "
                    "have to be multiples of {}",
                    rank_, flash_attention_name, what, fmt::ptr(m.data), stride, bytes));
  }

  int rank_;
  reachable_arguments reachable_;
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
