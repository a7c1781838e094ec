#include "decoder/operators.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/ops/rope_table.hpp>

namespace untax {
namespace {

[[noreturn]] void refuse(errc code, const std::string& text) {
  throw error(code, "decoder: " + text);
}

/// The options with what they leave out. Negative ones stay for `served` to refuse.
decoder_options completed(decoder_options o, const decoder_config& c) {
  constexpr std::int64_t usual = 2048;
  if (o.tokens == 0) o.tokens = std::min(usual, c.positions);
  if (o.pages == 0 && o.page_size > 0) o.pages = o.sequences * ceil_div(o.tokens, o.page_size);
  if (o.prompt_keys == 0) o.prompt_keys = std::max(o.prompt_tokens, o.tokens);
  return o;
}

/// Refuses what the operators do not have. Returns the configuration.
const decoder_config& served(const decoder_config& c, const decoder_options& o) {
  for (const std::int64_t capacity :
       {o.sequences, o.tokens, o.page_size, o.prompt_tokens, o.pages, o.prompt_keys}) {
    if (capacity < 1) refuse(errc::invalid_argument, "a capacity of its options is not positive");
  }
  if (o.tokens > c.positions) {
    refuse(errc::invalid_argument,
           fmt::format("sequences of {} tokens; max_position_embeddings is {}", o.tokens,
                       c.positions));
  }
  if (static_cast<std::int64_t>(c.windows.size()) != c.layers || c.layers < 1) {
    refuse(errc::invalid_argument,
           fmt::format("windows of {} layers; there are {}", c.windows.size(), c.layers));
  }
  if (c.intermediate % 8 != 0) {
    refuse(errc::unsupported,
           fmt::format("intermediate_size is {}; it has to be a multiple of 8", c.intermediate));
  }
  if (o.how != pattern::automatic && !is_bulk(o.how)) {
    refuse(errc::unsupported,
           fmt::format("there is no pattern {}; there are automatic, bulk_synchronous and "
                       "bulk_library",
                       name_of(o.how)));
  }
  if (o.invariant && o.how == pattern::bulk_library) {
    refuse(errc::unsupported,
           "option invariant is not there with bulk_library, whose kernels depend on the rows");
  }
  if (o.pages > std::numeric_limits<std::int32_t>::max() / o.page_size) {
    refuse(errc::invalid_argument,
           fmt::format("a cache of {} pages of {} tokens: rows have numbers of 32 bits", o.pages,
                       o.page_size));
  }
  return c;
}

/// The keys of layers with a window, if sequences can have more.
std::int64_t window_of(const decoder_config& c, const decoder_options& o) {
  const std::int64_t widest = std::ranges::max(c.windows);
  for (const std::int64_t window : c.windows) {
    if (window == 0 || window == widest) continue;
    refuse(errc::unsupported,
           fmt::format("layers have a sliding_window of {} tokens and of {}", window, widest));
  }
  return widest < o.tokens ? widest : 0;
}

linear projection(world& w, const decoder_config& c, const decoder_options& o, std::int64_t rows,
                  std::int64_t n, std::int64_t k, activation_function function) {
  linear_problem problem;
  problem.rows = rows;
  problem.n = n;
  problem.k = k;
  problem.type = c.type;
  problem.activation = function;
  return {w, problem, linear_options_of(o)};
}

rope_append rope_of(world& w, const decoder_operators& d) {
  const decoder_config& c = d.config;
  rope_append_problem problem;
  problem.tokens = d.rows;
  problem.heads = d.share.heads.size();
  problem.kv_heads = d.share.kv_heads.size();
  problem.head_dim = c.head_dim;
  problem.rotated = c.rotation.rotated;
  problem.batch = d.options.sequences;
  problem.keys = d.options.tokens;
  problem.page_size = d.options.page_size;
  problem.pages = d.options.pages;
  problem.positions = d.options.tokens;
  problem.type = c.type;
  problem.bias = c.qkv_bias;
  problem.norm = c.head_norms;
  problem.epsilon = c.epsilon;
  return {w, problem, {.varying_tokens = true, .constant_weights = !is_bulk(d.options.how)}};
}

all_reduce_norm norm_of(world& w, const decoder_operators& d) {
  all_reduce_norm_problem problem;
  problem.tokens = d.rows;
  problem.hidden = d.config.hidden;
  problem.type = d.config.type;
  problem.epsilon = d.config.epsilon;
  operator_options options;
  options.varying_rows = true;
  if (is_bulk(d.options.how) && w.memory() != memory_kind::cuda) {
    options.how = pattern::bulk_synchronous;
    options.launch = d.options.launch;
  }
  return {w, problem, options};
}

/// The parts of a sequence's keys where its bits may not depend on other sequences: as many as
/// attention on GPUs combines at once.
constexpr int fixed_splits = 8;

/// The least power of two that is not below `count`.
std::int64_t power_of_two(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
}

std::shared_ptr<void> table(decoder_backend& backend, const rope_frequencies& frequencies,
                            std::int64_t positions) {
  const std::vector<float> rotations = rope_table(frequencies, positions);
  const std::size_t bytes = rotations.size() * sizeof(float);
  auto memory = backend.allocate(bytes);
  backend.upload(memory.get(), rotations.data(), bytes, {});
  return memory;
}

}  // namespace

world alone_beside(const world& w) {
  if (w.memory() != memory_kind::cuda) return std::move(world::threads(1).front());
  world_options options;
  options.memory = memory_kind::cuda;
  options.device = w.device();
  options.ranks_per_gpu = w.ranks_per_gpu();
  options.heap_bytes = std::size_t{16} << 20;  // it grows
  return world::from_exchange(0, 1, {}, options);
}

linear_options linear_options_of(const decoder_options& o) {
  return {.varying_rows = true,
          .invariant = o.invariant,
          .constant_weights = !is_bulk(o.how),
          .library = o.how == pattern::bulk_library};
}

decoder_operators::decoder_operators(world& w, const decoder_config& c, const decoder_options& o)
    : job(&w.stable_view()),
      config(served(c, completed(o, c))),
      options(completed(o, c)),
      share(shares_of(c, w.rank(), w.size())),
      rows(std::max(o.sequences, o.prompt_tokens)),
      prompt_keys(options.prompt_keys),
      window(window_of(config, options)),
      alone(alone_beside(w)),
      backend(decoder_backend_of(w)),
      qkv(projection(alone, c, options, rows,
                     (share.heads.size() + 2 * share.kv_heads.size()) * c.head_dim, c.hidden,
                     activation_function::none)),
      output(projection(alone, c, options, rows, c.hidden, share.heads.size() * c.head_dim,
                        activation_function::none)),
      gate_up(projection(alone, c, options, rows, share.intermediate.size(), c.hidden, c.gate)),
      down(projection(alone, c, options, rows, c.hidden, share.intermediate.size(),
                      activation_function::none)),
      rope(rope_of(alone, *this)),
      norm(norm_of(is_bulk(options.how) ? alone : w, *this)) {
  if (c.post_norms) residual_norm.emplace(norm_of(alone, *this));
  rotations = table(*backend, c.rotation, options.tokens);
  local_rotations = table(*backend, c.local_rotation, options.tokens);
  const auto memory = [&](std::int64_t count, std::int64_t cols) {
    return backend->allocate(static_cast<std::size_t>(count * cols) * size_of(c.type));
  };
  const std::int64_t heads = share.heads.size() * c.head_dim;
  const std::int64_t kv_heads = share.kv_heads.size() * c.head_dim;
  // A step's attention takes as many sequences as its plan has; where it is that of prompts, too,
  // it is planned for many.
  constexpr std::int64_t many = 64;
  const std::int64_t most_batch =
      std::max(power_of_two(o.sequences), takes_each_token() ? many : 1);
  const std::int64_t most = rows + most_batch;
  zeros = memory(rows, c.hidden);
  projected = memory(rows, heads + 2 * kv_heads);
  q = memory(most, heads);
  attended = memory(most, heads);
  partial = memory(rows, c.hidden);
  if (is_bulk(options.how) && job->size() > 1) {
    sums = memory(rows, c.hidden);
    sum.emplace(*job, options, view(sums, rows, c.hidden));
  }
  activated = memory(rows, share.intermediate.size());
  gathered_keys = memory(prompt_keys, kv_heads);
  gathered_values = memory(prompt_keys, kv_heads);
  const auto numbers = [&](std::int64_t count) {
    return backend->allocate(static_cast<std::size_t>(count) * sizeof(std::int32_t));
  };
  if (window > 0) {
    window_lengths = numbers(most);
    window_rows = numbers(most * window);
  }
  plan_attentions(most_batch);
}

void decoder_operators::plan_attentions(std::int64_t most_batch) {
  flash_decode_options how;
  if (options.invariant) how.splits = fixed_splits;
  if (is_bulk(options.how) && alone.memory() != memory_kind::cuda) {
    how.how = options.how;
    how.launch = options.launch;
  }
  flash_decode_problem problem;
  problem.heads = share.heads.size();
  problem.kv_heads = share.kv_heads.size();
  problem.head_dim = config.head_dim;
  problem.type = config.type;
  problem.scale = config.attention_scale;
  problem.logit_cap = config.attention_cap;
  for (std::int64_t batch = 1; batch <= most_batch; batch *= 2) {
    problem.batch = batch;
    problem.keys = options.tokens;
    problem.page_size = options.page_size;
    problem.pages = options.pages;
    step_attentions_.try_emplace(batch, alone, problem, how);
    if (window == 0) continue;
    problem.keys = window;
    problem.page_size = 1;
    problem.pages = options.pages * options.page_size;
    window_attentions_.try_emplace(batch, alone, problem, how);
  }
}

void decoder_operators::open_windows(const layer_tokens& tokens, stream_ref stream) {
  if (window == 0) return;
  const bool step = tokens.lengths != nullptr;
  const std::int64_t count =
      step ? step_attention(tokens.rows).batch : tokens.rows + most_step_batch();
  backend->open_windows({.lengths = step ? tokens.lengths : tokens.token_lengths,
                         .page_table = step ? tokens.page_table : tokens.token_pages,
                         .sequence_pages = sequence_pages(),
                         .page_size = options.page_size,
                         .window = window},
                        count, static_cast<std::int32_t*>(window_lengths.get()),
                        static_cast<std::int32_t*>(window_rows.get()), stream);
}

decoder_operators::planned_attention decoder_operators::step_attention(std::int64_t batch,
                                                                       bool in_window) {
  auto& attentions = in_window ? window_attentions_ : step_attentions_;
  auto attention = attentions.lower_bound(batch);
  if (attention == attentions.end()) --attention;
  return {.batch = attention->first, .attention = &attention->second};
}

bool decoder_operators::plans_prompt_attention(const layer_tokens& tokens) {
  const std::size_t before = prompt_attentions_.size();
  (void)prompt_attention(tokens);
  return prompt_attentions_.size() > before;
}

flash_attention& decoder_operators::prompt_attention(const layer_tokens& tokens) {
  flash_attention_problem problem;
  problem.batch = tokens.batch;
  problem.heads = share.heads.size();
  problem.kv_heads = share.kv_heads.size();
  problem.head_dim = config.head_dim;
  problem.queries = power_of_two(tokens.longest_prompt);
  problem.keys = power_of_two(tokens.most_keys);
  problem.causal = true;
  problem.type = config.type;
  problem.scale = config.attention_scale;
  const std::tuple key(problem.batch, problem.queries, problem.keys);
  return prompt_attentions_.try_emplace(key, alone, problem).first->second;
}

layer_state decoder_operators::add_and_normalise(const const_matrix& partial_rows,
                                                 const const_matrix& residual, const void* weight,
                                                 stream_ref stream) {
  norm.run({.in = sum ? sum->run(partial_rows, stream) : partial_rows,
            .residual = residual,
            .weight = weight},
           stream);
  return state_of(norm, partial_rows.rows);
}

layer_state decoder_operators::state_of(all_reduce_norm& op, std::int64_t count) const {
  const norm_results results = op.result();
  return {.x = {results.x, config.type, count, config.hidden},
          .normed = {results.out, config.type, count, config.hidden}};
}

std::shared_ptr<decoder_operators> plan_decoder_operators(world& w, const decoder_config& config,
                                                          const decoder_options& options) {
  return std::make_shared<decoder_operators>(w, config, options);
}

}  // namespace untax
