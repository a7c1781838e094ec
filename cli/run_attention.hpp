#pragma once

#include <initializer_list>

#include <CLI/CLI.hpp>

#include "ops/flash_decode/workload.hpp"

namespace untax::cli {

/// The options of `untax run` that only flash_decode has.
inline constexpr std::initializer_list<const char*> attention_options = {
    "--batch",     "--heads", "--kv-heads",  "--head-dim", "--keys",
    "--page-size", "--scale", "--logit-cap", "--splits"};

/// What they say, and what others say that it shares with other operators.
struct attention_request {
  attention_work work{
      .problem = {.batch = 4, .heads = 8, .kv_heads = 2, .head_dim = 64, .keys = 512}};
  flash_decode_options options;
};

void add_attention_options(CLI::App& verb, attention_request& o);

/// What is to be run. Throws `invalid_argument` for values that do not fit each other.
[[nodiscard]] trial_subject subject_of(attention_request o, memory_kind where);

}  // namespace untax::cli
