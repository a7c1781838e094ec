#pragma once

#include <initializer_list>

#include <CLI/CLI.hpp>

#include "ops/flash_decode/workload.hpp"
#include "ops/merge_partial_attention/workload.hpp"

namespace untax::cli {

/// The options of `untax run` that only operators of attention have.
inline constexpr std::initializer_list<const char*> attention_options = {
    "--batch",     "--heads", "--kv-heads",  "--head-dim", "--keys",
    "--page-size", "--scale", "--logit-cap", "--splits",   "--own-heads"};

/// The values of these options, and of those that are shared with other operators.
struct attention_request {
  attention_work work{
      .problem = {.batch = 4, .heads = 8, .kv_heads = 2, .head_dim = 64, .keys = 512}};
  flash_decode_options options;
  bool own_heads = false;
};

void add_attention_options(CLI::App& verb, attention_request& o);

/// The subject to run. Throws `invalid_argument` for values that do not fit each other.
[[nodiscard]] trial_subject subject_of(attention_request o, memory_kind where);
/// The same for merge_partial_attention, where `batch` is the number of tokens.
[[nodiscard]] merge_partial_attention_problem merge_problem_of(const attention_request& o);
[[nodiscard]] trial_subject merge_subject_of(const attention_request& o, memory_kind where);

}  // namespace untax::cli
