#include <mutex>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/rope_append/rope_append.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/rope_append/backend.hpp"

namespace untax {
namespace {

gpu::rope_arguments arguments_of(const rope_append_problem& p, bool constant_weights) {
  gpu::rope_arguments a;
  a.type = p.type;
  a.heads = static_cast<int>(p.heads);
  a.kv_heads = static_cast<int>(p.kv_heads);
  a.head_dim = static_cast<int>(p.head_dim);
  a.rotated = static_cast<int>(p.rotated);
  a.batch = static_cast<int>(p.batch);
  a.keys = static_cast<int>(p.keys);
  a.page_size = static_cast<int>(p.page_size);
  a.pages = static_cast<int>(p.pages);
  a.positions = static_cast<int>(p.positions);
  a.interleaved = p.interleaved;
  a.constant_weights = constant_weights;
  a.norm_offset = p.norm_offset;
  a.epsilon = p.epsilon;
  return a;
}

/// The backend on the GPU of a rank, which is the current one.
class device_backend final : public rope_append_backend {
 public:
  device_backend(world& w, const rope_append_problem& problem, bool constant_weights)
      : rank_(w.rank()),
        early_(w.ranks_per_gpu() == 1),
        arguments_(rope_append_name, w),
        given_(arguments_of(problem, constant_weights)) {
    require_kernel(problem);
    gpu::load_rope_append(given_);
  }

  void run(const rope_append_operands& o, stream_ref given) override {
    check(o);
    gpu::rope_arguments a = given_;
    a.tokens = static_cast<int>(o.qkv.rows);
    a.qkv = o.qkv.data;
    a.bias = o.bias;
    a.q_norm = o.q_norm;
    a.k_norm = o.k_norm;
    a.rotations = o.rotations;
    a.position = o.position;
    a.sequence = o.sequence;
    a.page_table = o.page_table;
    a.key_cache = o.keys.data;
    a.value_cache = o.values.data;
    a.q = o.q.data;
    a.qkv_stride = o.qkv.stride;
    a.keys_stride = o.keys.stride;
    a.values_stride = o.values.stride;
    a.q_stride = o.q.stride;
    gpu::start_rope_append(a, early_, own_.unless(given));
    if (given.handle == nullptr)
      own_.wait(fmt::format("rank {}: {}: the kernel failed", rank_, rope_append_name));
  }

 private:
  void require_kernel(const rope_append_problem& p) const {
    const auto refuse = [&](const std::string& text) {
      throw error(errc::unsupported,
                  fmt::format("rank {}: {} on a GPU {}", rank_, rope_append_name, text));
    };
    if (p.type == dtype::f32) refuse("takes fp16 and bf16, not fp32");
    if (p.head_dim % gpu::rope_elements != 0 || p.head_dim > gpu::most_rope_elements)
      refuse(fmt::format("takes heads of multiples of {} up to {} elements, not of {}",
                         gpu::rope_elements, gpu::most_rope_elements, p.head_dim));
    if (p.rotated % (2 * gpu::rope_elements) != 0)
      refuse(fmt::format("rotates multiples of {} elements, not {}", 2 * gpu::rope_elements,
                         p.rotated));
    constexpr std::int64_t most = std::int64_t{1} << 30;
    const std::int64_t heads = p.heads + 2 * p.kv_heads;
    if (p.tokens > most / heads)
      refuse(fmt::format("takes {} tokens at most with so many heads, not {}", most / heads,
                         p.tokens));
  }

  void check(const rope_append_operands& o) {
    constexpr std::size_t bytes = 16;  // of a load
    const std::lock_guard only(checking_);
    arguments_.require_rows("qkv", o.qkv, bytes);
    arguments_.require("bias", o.bias, bytes);
    arguments_.require("q_norm", o.q_norm, bytes);
    arguments_.require("k_norm", o.k_norm, bytes);
    arguments_.require("rotations", o.rotations, bytes);
    arguments_.require("position", o.position);
    arguments_.require("sequence", o.sequence);
    arguments_.require("page_table", o.page_table);
    arguments_.require_rows("keys", as_const(o.keys), bytes);
    arguments_.require_rows("values", as_const(o.values), bytes);
    arguments_.require_rows("q", as_const(o.q), bytes);
  }

  int rank_;
  bool early_;
  std::mutex checking_;  // guards the next member, since several threads may call a run
  device_arguments arguments_;
  own_stream own_;
  gpu::rope_arguments given_;
};

}  // namespace

process_owned<rope_append_backend> device_rope_append(world& w, const rope_append_problem& problem,
                                                      bool constant_weights) {
  w.use_device();
  return make_process_owned<device_backend>(w, problem, constant_weights);
}

}  // namespace untax
