#include "engines/gpu/decode_step/decode_step.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/decode_step/kernel.cuh"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/launch/common_end.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/rooms/operator_host.hpp"

namespace untax::gpu {
namespace {

const void* kernel_of(int head_dim) {
  return head_dim == 64 ? reinterpret_cast<const void*>(decode_step_kernel<64>)
                        : reinterpret_cast<const void*>(decode_step_kernel<128>);
}

/// The sizes of a step of some tokens. Without memory for a ring it has no stages.
step_shape shape_of(const step_model& m, int tokens, int blocks) {
  step_shape s;
  s.blocks = blocks;
  s.tokens = tokens;
  s.hidden = m.hidden;
  s.heads = m.heads;
  s.kv_heads = m.kv_heads;
  s.head_dim = m.head_dim;
  s.intermediate = m.intermediate;
  s.layers = static_cast<int>(m.layers.size());
  s.windows = m.window > 0 ? 1 : 0;
  s.token_bits = std::bit_width(static_cast<unsigned>(tokens - 1));
  s.box_bits = std::countr_zero(static_cast<unsigned>(m.page_size | step_shape::stage_keys));
  // Chunks of rows that are on their way at a time: few tokens have few bytes.
  constexpr int row_bytes = 36 * 1024;
  s.activation_stages =
      std::clamp(row_bytes / (tokens * step_shape::row_pitch), 3, most_activation_stages);
  constexpr int most_bytes = 227 * 1024;  // of a block of sm_90
  s.ring_stages =
      std::clamp((most_bytes - s.shared_bytes()) / step_shape::stage_bytes, 0, most_ring_stages);
  return s;
}

}  // namespace

bool decode_step::serves(const world& w, const step_model& m) {
  constexpr int least_stages = 8;
  const int blocks = num_sms_of(w);
  // Rows of the residual stream, times the weights of a norm, may be too large for fp16.
  const bool has_kernel = m.type == dtype::bf16 && (m.head_dim == 64 || m.head_dim == 128) &&
                          is_gated(m.gate) && w.size() <= most_ranks && m.most_tokens >= 1 &&
                          m.most_tokens <= step_shape::most_tokens;
  if (!has_kernel || m.heads < 1 || m.heads % m.kv_heads != 0 || m.layers.empty()) return false;
  const bool has_whole_panels = m.hidden % step_shape::slice == 0 &&
                                m.intermediate % step_shape::slice == 0 && m.page_size % 8 == 0;
  const int of_lane = m.head_dim / 32;
  const bool turns = m.rotated > 0 && m.rotated % (2 * of_lane) == 0;
  // Products of the number of spans and that of blocks have 31 bits.
  const std::int64_t spans = std::int64_t{m.most_tokens} * m.kv_heads * m.sequence_pages *
                             ceil_div(m.page_size, step_shape::stage_keys);
  return has_whole_panels && turns && m.heads / m.kv_heads <= step_shape::most_group &&
         (spans + 1) * (blocks + 1) <= std::numeric_limits<std::int32_t>::max() &&
         shape_of(m, m.most_tokens, blocks).ring_stages >= least_stages;
}

struct decode_step::state {
  state(world& w, const step_model& m)
      : end(w),
        model(m),
        host(w, "decode_step", {.own = true}),
        kernel(kernel_of(m.head_dim)),
        blocks(num_sms_of(w)) {
    const step_shape most = shape_of(m, m.most_tokens, blocks);
    const std::size_t inbox = w.size() == 1 ? 0
                                            : std::size_t{2} * static_cast<std::size_t>(w.size()) *
                                                  static_cast<std::size_t>(m.most_tokens) *
                                                  static_cast<std::size_t>(m.hidden) * 2;
    a.run = host.allocate(
        {.threads = step_threads, .inbox = {{inbox, room_content::words}}, .own_words = blocks + 1},
        nullptr);
    a.arrived = a.run.epochs + blocks;
    a.layers = host.launcher().own_table(layers());
    a.final_norm = m.final_norm;
    a.function = m.gate;
    a.epsilon = m.epsilon;
    a.scale = m.scale;
    a.window = m.window;
    a.rotated = m.rotated;
    a.page_size = m.page_size;
    a.sequence_pages = m.sequence_pages;
    a.most_tokens = m.most_tokens;
    a.rotations = m.rotations;
    a.has_head_norms = m.layers.front().q_norm != nullptr;
    const auto rows = [&](int columns) {
      return memory(std::int64_t{m.most_tokens} * columns * 2);
    };
    a.scaled = rows(m.hidden);
    a.projected = rows(most.qkv_columns());
    a.attended = rows(m.heads * m.head_dim);
    a.activated = rows(m.intermediate);
    a.squares = static_cast<float*>(memory(std::int64_t{m.most_tokens} * blocks * 4));
    a.parts = static_cast<uint4*>(memory(std::int64_t{2} * blocks * most.part_words() * 16));
    int shared = 0;
    for (int tokens = 1; tokens <= m.most_tokens; ++tokens)
      shared = std::max(shared, shape_of(m, tokens, blocks).shared_bytes());
    host.launcher().prepare(kernel, static_cast<std::size_t>(shared));
    host.launcher().dry_run([&](cudaStream_t on) {
      step_arguments dry = a;
      dry.shape = most;
      dry.run.launch = -1;
      launch(dry, on);
    });
  }

  void* memory(std::int64_t bytes) {
    return host.launcher().own_words(static_cast<int>(ceil_div(bytes, std::int64_t{8})));
  }

  [[nodiscard]] std::vector<step_layer> layers() const {
    std::vector<step_layer> table;
    for (const step_model::layer& from : model.layers) {
      step_layer to;
      const const_matrix* const matrices[] = {&from.qkv, &from.output, &from.gate_up, &from.down};
      const void* const biases[] = {from.qkv_bias, from.output_bias, from.gate_up_bias,
                                    from.down_bias};
      for (int i = 0; i < 4; ++i) {
        to.weights[i] =
            panels(*matrices[i], step_shape::unit_rows, step_shape::chunk / step_shape::slice);
        to.bias[i] = biases[i];
        if (biases[i] != nullptr) to.biases |= 1U << i;
      }
      const int together = std::min(step_shape::stage_keys,
                                    1 << std::countr_zero(static_cast<unsigned>(model.page_size)));
      const int of_head = model.head_dim / step_shape::slice;
      to.cached[0] = panels(as_const(from.keys), together, of_head);
      to.cached[1] = panels(as_const(from.values), together, of_head);
      to.keys = from.keys.data;
      to.values = from.values.data;
      to.windowed = from.windowed && model.window > 0 ? 1 : 0;
      to.q_norm = from.q_norm;
      to.k_norm = from.k_norm;
      to.input_norm = from.input_norm;
      to.mlp_norm = from.mlp_norm;
      table.push_back(to);
    }
    return table;
  }
  [[nodiscard]] CUtensorMap panels(const const_matrix& m, int rows, int together) const {
    return panel_map_of({m.data, m.rows, m.cols, m.stride}, model.type, rows, together);
  }

  void launch(const step_arguments& given, cudaStream_t on) const {
    step_arguments passed = given;
    void* arguments[] = {&passed};
    host.launcher().launch({.kernel = kernel,
                            .blocks = blocks,
                            .threads = step_threads,
                            .shared_bytes = static_cast<std::size_t>(given.shape.shared_bytes())},
                           on, arguments);
  }

  common_end end;
  step_model model;
  step_arguments a;
  operator_host host;
  const void* kernel;
  int blocks;
};

decode_step::decode_step(world& w, const step_model& model)
    : state_(std::make_unique<state>(w, model)) {}
decode_step::~decode_step() = default;

void decode_step::run(const step_tokens& tokens, stream_ref stream) {
  state& s = *state_;
  s.host.run(stream, [&](whole_run& run, cudaStream_t on) {
    s.a.shape = shape_of(s.model, tokens.tokens, s.blocks);
    s.a.lengths = tokens.lengths;
    s.a.page_table = tokens.page_table;
    s.a.x = tokens.x;
    s.a.normed = tokens.normed;
    run([&] { s.launch(s.a, on); });
  });
}

}  // namespace untax::gpu
