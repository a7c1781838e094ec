#include "run_attention.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"
#include "ops/flash_decode/planning.hpp"

namespace untax::cli {

void add_attention_options(CLI::App& verb, attention_request& o) {
  flash_decode_problem& p = o.work.problem;
  verb.add_option("--batch", p.batch,
                  "of flash_decode: sequences, of which one token each is decoded; of "
                  "merge_partial_attention: tokens")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--heads", p.heads, "heads of the queries, a multiple of --kv-heads")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--kv-heads", p.kv_heads, "heads of keys and values")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--head-dim", p.head_dim, "elements of a head")
      ->check(between(1, 4096))
      ->capture_default_str();
  verb.add_option("--keys", p.keys, "of a sequence at one rank, at most")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("--page-size", p.page_size, "keys of a page; 0: the cache has no pages")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("--scale", p.scale, "of the logits; 0: 1 / sqrt(--head-dim)")
      ->check(not_negative());
  verb.add_option("--logit-cap", p.logit_cap, "logits become cap * tanh(logit / cap); 0: they stay")
      ->check(not_negative());
  verb.add_option("--splits", o.options.splits, "parts of a sequence at a rank; 0: untax chooses")
      ->check(between(0, 1024));
  verb.add_flag("--own-heads", o.own_heads,
                "of merge_partial_attention: each rank gets its share of the heads, not all");
}

trial_subject subject_of(attention_request o, memory_kind where) {
  flash_decode_problem& p = o.work.problem;
  if (p.heads % p.kv_heads != 0) {
    throw error(errc::invalid_argument,
                fmt::format("--heads is {} and --kv-heads {}; the first has to be a multiple of "
                            "the second",
                            p.heads, p.kv_heads));
  }
  if (p.partials == dtype::f16) {
    throw error(errc::invalid_argument,
                "--partials is fp16; flash_decode sends partial results as fp32 or bf16");
  }
  // A few pages more than are needed, so that some pages of the cache are unused.
  if (p.page_size > 0) p.pages = p.batch * pages_of_sequence(p) + 3;
  return untax::subject_of(o.work, o.options, where);
}

merge_partial_attention_problem merge_problem_of(const attention_request& o) {
  const flash_decode_problem& p = o.work.problem;
  merge_partial_attention_problem problem{
      .tokens = p.batch, .heads = p.heads, .head_dim = p.head_dim, .type = p.type};
  if (o.own_heads) problem.get = merged_heads::own;
  return problem;
}

trial_subject merge_subject_of(const attention_request& o, memory_kind where) {
  return untax::subject_of(
      merge_problem_of(o),
      {.launch = o.options.launch, .workers = o.options.workers, .senders = o.options.senders},
      where);
}

}  // namespace untax::cli
