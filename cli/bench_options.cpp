#include "bench_options.hpp"

#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"

namespace untax::cli {
namespace {

constexpr int most_bench_ranks = 64;

}  // namespace

void add_common_options(CLI::App& suite, bench_options& options) {
  suite.add_option("--repeat", options.repeats, "timed runs of everything")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  suite
      .add_option("--json", options.json,
                  "write the figures as JSON; - for stdout instead of the table")
      ->check(writable_file());
}

void add_ranks_option(CLI::App& suite, bench_options& options, int least) {
  const auto enough = [&suite, least](const std::string& text) -> std::string {
    if (least < 2 || text != "1") return {};
    return fmt::format("the suite {} measures transfers between two GPUs or more",
                       suite.get_name());
  };
  const auto once = [&suite](const std::vector<int>& counts) {
    if (counts.size() == 1) return;
    throw error(errc::invalid_argument, fmt::format("--ranks has {} values; the suite {} takes one",
                                                    counts.size(), suite.get_name()));
  };
  suite
      .add_option_function<std::vector<int>>(
          "--ranks",
          [&options, once](const std::vector<int>& counts) {
            once(counts);
            options.rank_counts = counts;
          },
          "GPUs; all of them by default")
      ->allow_extra_args(false)
      ->check(between(1, most_bench_ranks))
      ->check(CLI::Validator(enough, ""));
}

void add_rank_counts_option(CLI::App& suite, bench_options& options, const std::string& meaning) {
  suite.add_option("--ranks", options.rank_counts, meaning)
      ->allow_extra_args(false)
      ->check(between(1, most_bench_ranks));
}

void add_sizes_option(CLI::App& suite, bench_options& options, const std::string& meaning) {
  suite.add_option("--size", options.sizes, meaning + "; several may be given")
      ->allow_extra_args(false)
      ->check(between(1, std::numeric_limits<int>::max()));
}

void add_problem_options(CLI::App& suite, bench_options& options, const std::string& meaning) {
  constexpr int most_problems = 100'000;
  suite.add_option("--problems", options.problems, meaning)->check(between(1, most_problems));
  suite.add_option("--seed", options.seed, "of what is drawn at random")->capture_default_str();
}

void add_seconds_option(CLI::App& suite, bench_options& options, const std::string& meaning) {
  suite.add_option("--seconds", options.seconds, meaning)->check(between(1, 86'400));
}

void add_attention_options(CLI::App& verb, attention_bench_request& request) {
  verb.add_option("--heads", request.heads,
                  "paper (those of arXiv 2511.02168), 70b, 8b, mha or mha-64; several may be given")
      ->allow_extra_args(false)
      ->check(words(known_heads()));
  verb.add_option("--batch", request.batches, "sequences; several may be given")
      ->allow_extra_args(false)
      ->check(between(1, 4096));
  verb.add_option("--keys", request.keys, "of a sequence at a rank; several may be given")
      ->allow_extra_args(false)
      ->check(at_least(1));
  verb.add_option("--page-size", request.page_size, "keys of a page; 0: no pages")
      ->check(at_least(0));
  verb.add_flag("--bf16-partials", request.narrow, "send partial results as bf16");
}

void add_gemm_options(CLI::App& verb, gemm_bench_request& request) {
  verb.add_option("--least-rows", request.least_rows,
                  "of random problems only those with so many rows of A");
  verb.add_option("--most-rows", request.most_rows, "the same, at most");
  auto* every =
      verb.add_flag("--every-plan", request.every_plan,
                    "time every plan that the model does not rule out; --json has all times");
  auto* rasters =
      verb.add_flag(
              "--rasters", request.rasters,
              "time the plan also with the usual bands of tiles, and with those that a search "
              "as in untax locality finds")
          ->excludes(every);
  verb.add_flag("--invariant", request.invariant,
                "time also the plan whose rows have the same bits in any batch")
      ->excludes(every)
      ->excludes(rasters);
}

void add_norm_options(CLI::App& verb, norm_bench_request& request) {
  constexpr std::int64_t most_tokens = 1 << 20;
  constexpr std::int64_t most_hidden = 16384;
  verb.add_option("--tokens", request.tokens,
                  "rows that are summed and normalised; several may be given; 1 to 4096 by default")
      ->allow_extra_args(false)
      ->check(between(1, most_tokens));
  verb.add_option("--hidden", request.hidden,
                  "elements of a token; several may be given; 4096, 8192 and 16384 by default")
      ->allow_extra_args(false)
      ->check(between(8, most_hidden));
}

void add_overlap_options(CLI::App& verb, overlap_request& request) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::vector<std::string> patterns;
  for (const pattern p : all_patterns) patterns.emplace_back(name_of(p));
  verb.add_option("--suite", request.shapes, "shapes of GEMMs: prefill or decode")
      ->check(words({"prefill", "decode"}))
      ->capture_default_str();
  verb.add_option("-m", request.m, "only these rows, or, with -n and -k, shapes of their own")
      ->allow_extra_args(false)
      ->check(between(1, most));
  verb.add_option("-n", request.n, "columns of the result, of one rank for all-gather-gemm")
      ->check(between(8, most));
  verb.add_option("-k", request.k, "reduction dimension")->check(between(8, most));
  verb.add_option("--patterns", request.patterns,
                  "only these beside bulk_library; several may be given; automatic is also "
                  "measured as an operator of a capacity, the next power of two")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(words(patterns));
}

void add_gather_option(CLI::App& verb, overlap_request& request) {
  verb.add_option("--gather", request.gather,
                  "with -n and -k: the sharded dimension of A, rows or k")
      ->check(words({"rows", "k"}))
      ->capture_default_str();
}

void add_partials_option(CLI::App& verb, overlap_request& request) {
  verb.add_option(
          "--partials", request.partials,
          "element type of partial results that are summed: bf16 or fp32; by default that of "
          "the problem")
      ->check(words({"bf16", "fp32"}));
}

void add_tune_options(CLI::App& verb, tune_request& request) {
  verb.add_flag("--quick", request.quick, "measure fewer shapes");
  verb.add_flag("--check", request.check, "write no table: judge the choices of automatic");
  verb.add_option("--held-out", request.held_out,
                  "with --check: shapes for each operator and number of ranks")
      ->check(between(1, 1000))
      ->capture_default_str();
}

void add_spmv_bench_options(CLI::App& verb, spmv_bench_request& request) {
  verb.add_option("--matrices", request.folder, "a folder of Matrix Market files");
  verb.add_option("--twins", request.twins,
                  "a table of lengths of rows; matrices like its records are made up");
  verb.add_flag("--stencils", request.stencils,
                "matrices of regular grids, each with at most --most-elements");
  verb.add_option("--take", request.take, "twins, at most")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--most-elements", request.most_nnz, "of a twin, or of a stencil's matrix")
      ->check(between(1, std::numeric_limits<std::int32_t>::max()))
      ->capture_default_str();
  auto* const band = verb.add_option("--band", request.band,
                                     "how far a twin's elements are from the diagonal; 0: anywhere")
                         ->check(at_least(0));
  verb.add_flag("--mixed-bands", request.mixed_bands,
                "twins' elements are anywhere, or an 8th, a 64th or a 512th of their "
                "columns from the diagonal, by turns")
      ->excludes(band);
  verb.add_option("--threads", request.threads, "0: one for each processor")
      ->check(between(0, 1024));
  verb.add_option("--backend", request.backend, "host, or cuda, which is one GPU")
      ->check(words({"host", "cuda"}))
      ->capture_default_str();
  verb.add_option("--dtype", request.type, "fp64 or fp32")
      ->check(words({"fp64", "fp32"}))
      ->capture_default_str();
  verb.add_flag("--verify", request.verify, "compare with compensated sums");
  verb.add_flag("--resume", request.resume,
                "skip the matrices that the file of --json has, and add the others to it");
  verb.add_option("--schema", request.schema,
                  "write the schema that `untax select` takes with the table of --json")
      ->check(writable_file());
}

}  // namespace untax::cli
