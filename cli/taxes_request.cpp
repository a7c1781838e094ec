#include "taxes_request.hpp"
#include "files.hpp"

#include <initializer_list>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/taxes/model_config.hpp>
#include <untax/tile/shard.hpp>

#include "arguments.hpp"
#include "names.hpp"
#include "ops/common/registry.hpp"
#include "run_request.hpp"

namespace untax::cli {
namespace {

/// Up to this number, tokens count as a batch that decodes.
constexpr int most_decoding = 256;
constexpr std::int64_t usual_keys_on_host = 512;
constexpr std::int64_t usual_keys_on_gpus = 4096;

constexpr dtype types[] = {dtype::f32, dtype::f16, dtype::bf16};
constexpr gather_axis axes[] = {gather_axis::rows, gather_axis::k};
constexpr layer_layout layouts[] = {layer_layout::sequence_parallel, layer_layout::all_reduce};
constexpr const char* flash_decode_option = "flash_decode";

memory_kind backend_of(const taxes_request& request, dtype type) {
  const std::size_t place = place_in("--backend", request.backend, {"auto", "host", "cuda"});
  if (place == 1) return memory_kind::host;
  if (place == 2 && request.ranks < 2) {
    throw error(
        errc::invalid_argument,
        fmt::format("--tensor-parallel is {}; between GPUs it has to be 2 or more", request.ranks));
  }
  if (place == 2) return memory_kind::cuda;
  const bool on_gpus = type != dtype::f32 && request.ranks > 1 && gpus_here() >= request.ranks;
  return on_gpus ? memory_kind::cuda : memory_kind::host;
}

void refuse(const CLI::App& verb, const std::initializer_list<const char*>& options,
            const std::string& why) {
  for (const char* option : options) {
    if (verb.count(option) > 0) {
      throw error(errc::invalid_argument,
                  fmt::format("{} means nothing {}; leave it out", option, why));
    }
  }
}

taxes_plan plan_of_model(const CLI::App& verb, const taxes_request& request, tax_report& report) {
  refuse(verb, {"-m", "-n", "-k", "--gather", "--heads", "--kv-heads", "--head-dim", "--dtype"},
         "with --model, which says it");
  const model_config model = load_model(request.model);
  taxes_plan plan{backend_of(request, model.type), {}};
  const std::int64_t keys = keys_of(request, plan.backend);
  const layer_layout layout = named("--layer", request.layer, layouts);
  plan.operations = layer_operations(model, request.ranks, request.tokens, keys, layout);
  report.model = model.name;
  report.tokens = request.tokens;
  report.type = model.type;
  report.layers = static_cast<int>(model.layers);
  if (model.moe) report.left_out.emplace_back("routed experts");
  report.notes = layer_notes(model, request.ranks, keys, layout);
  return plan;
}

std::vector<std::string> known_operators() {
  std::vector<std::string> known;
  for (const operator_entry& entry : operators()) known.push_back(entry.name);
  known.emplace_back(flash_decode_option);
  return known;
}

taxes_plan plan_of_operator(const CLI::App& verb, const taxes_request& request,
                            tax_report& report) {
  refuse(verb, {"--tokens"}, "with --operator, which has -m");
  refuse(verb, {"--layer"}, "with --operator, which is no layer");
  const std::vector<std::string> known = known_operators();
  const std::size_t place = place_in("--operator", request.operator_name, known);
  layer_operation op = request.one;
  op.name = op.operator_name = request.operator_name;
  op.type = named("--dtype", request.type, types);
  taxes_plan plan{backend_of(request, op.type), {}};
  if (place + 1 == known.size()) {
    refuse(verb, {"-n", "-k", "--gather"}, "to flash_decode, which has --keys and heads");
    if (op.attention.heads % op.attention.kv_heads != 0) {
      throw error(errc::invalid_argument,
                  fmt::format("--heads is {} and --kv-heads {}; the first has to be a multiple of "
                              "the second",
                              op.attention.heads, op.attention.kv_heads));
    }
    op.n = op.attention.heads * op.attention.head_dim;
    op.k = ceil_div<std::int64_t>(request.keys >= 0 ? request.keys : usual_keys_on_gpus,
                                  request.ranks);
  } else {
    refuse(verb, {"--keys", "--heads", "--kv-heads", "--head-dim"}, "to a GEMM");
    if (!operators()[place].gathers) {
      refuse(verb, {"--gather"}, fmt::format("to {}, which gathers nothing", op.name));
    }
    op.gather = named("--gather", request.gather, axes);
    op.attention = {};
  }
  plan.operations = {op};
  report.model = op.name;
  report.tokens = static_cast<int>(op.m);
  report.type = op.type;
  report.layers = 1;
  report.one_operator = true;
  return plan;
}

}  // namespace

std::int64_t keys_of(const taxes_request& request, memory_kind backend) {
  if (request.keys >= 0) return request.keys;
  if (request.tokens > most_decoding) return 0;
  return backend == memory_kind::cuda ? usual_keys_on_gpus : usual_keys_on_host;
}

void add_request_options(CLI::App& verb, taxes_request& o) {
  o.one.attention = {32, 8, 128};
  auto* model = verb.add_option("--model", o.model,
                                "a name such as llama-3.1-8b, or the config.json of a Hugging Face "
                                "model")
                    ->transform(shipped_file("models"));
  verb.add_option("--operator", o.operator_name, "instead of a model: one operator")
      ->check(words(known_operators()))
      ->excludes(model);
  verb.add_option("--backend", o.backend,
                  "host: ranks are threads; cuda: they are GPUs; auto: GPUs if there are enough")
      ->check(words({"auto", "host", "cuda"}))
      ->capture_default_str();
  verb.add_option("--tensor-parallel,--ranks", o.ranks,
                  "ranks that share every layer; with --machine its GPUs, 8 at most, unless told")
      ->check(between(1, most_predicted_ranks))
      ->capture_default_str();
  verb.add_option("--tokens", o.tokens, "rows of the activations, all ranks together")
      ->check(between(1, 1 << 20))
      ->capture_default_str();
  verb.add_option("--keys", o.keys,
                  "keys of each sequence to attend to, all ranks together; 0: no attention")
      ->check(at_least(0));
  verb.add_option("--layer", o.layer,
                  "sequence-parallel: ranks share the tokens; all-reduce: all have them")
      ->check(words({"sequence-parallel", "all-reduce"}))
      ->capture_default_str();
  verb.add_option("-m", o.one.m, "of --operator: rows of A, or sequences of flash_decode")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("-n", o.one.n, "of --operator: columns of the result")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("-k", o.one.k, "of --operator: the reduction dimension, all ranks together")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--gather", o.gather, "of --operator all_gather_gemm: rows or k")
      ->check(words({"rows", "k"}))
      ->capture_default_str();
  verb.add_option("--heads", o.one.attention.heads, "of --operator flash_decode")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--kv-heads", o.one.attention.kv_heads, "of --operator flash_decode")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--head-dim", o.one.attention.head_dim, "of --operator flash_decode")
      ->check(between(1, 4096))
      ->capture_default_str();
  verb.add_option("--dtype", o.type, "of --operator: fp32, fp16 or bf16")
      ->check(words({"fp32", "fp16", "bf16"}))
      ->capture_default_str();
}

taxes_plan plan_of(const CLI::App& verb, const taxes_request& request, tax_report& report) {
  if (request.model.empty() == request.operator_name.empty()) {
    throw error(errc::invalid_argument,
                "there is nothing to measure; give --model FILE or --operator NAME");
  }
  report.tensor_parallel = request.ranks;
  return request.model.empty() ? plan_of_operator(verb, request, report)
                               : plan_of_model(verb, request, report);
}

}  // namespace untax::cli
