#include "taxes_chain_predicted.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/decoder/shares.hpp>
#include <untax/taxes/timing.hpp>

#include "decoder/fused_step.hpp"
#include "ops/timing/chain.hpp"
#include "ops/timing/predictor.hpp"
#include "taxes_chain_rows.hpp"

namespace untax::cli {
namespace {

/// The part of the first rank, which is the largest.
timed_chain chain_of(const chain_request& request, const decoder_config& config, int ranks) {
  const weight_shares share = shares_of(config, 0, request.ranks);
  return {.ranks = ranks,
          .sequences = request.tokens,
          .hidden = config.hidden,
          .heads = share.heads.size(),
          .kv_heads = share.kv_heads.size(),
          .head_dim = config.head_dim,
          .intermediate = share.intermediate.size(),
          .vocabulary = share.vocabulary.size(),
          .one_kernel = request.tokens <= most_fused_tokens && may_be_one_kernel(config)};
}

/// Layers by the keys that they see.
std::map<std::int64_t, int> layers_by_keys(const chain_request& request,
                                           const decoder_config& config) {
  std::map<std::int64_t, int> layers;
  for (const std::int64_t window : config.windows)
    ++layers[window > 0 ? std::min(window, request.keys) : request.keys];
  return layers;
}

/// A row for the average layer and one for the rest, without times.
std::pair<tax_row, tax_row> empty_rows(const chain_request& request, const decoder_config& config) {
  tax_row layer;
  layer.op.name = "layer";
  layer.op.operator_name = "decoder_layer";
  layer.op.m = request.tokens;
  layer.op.n = config.hidden;
  layer.op.k = request.keys;
  layer.op.layers = static_cast<int>(config.layers);
  layer.op.type = config.type;
  tax_row ends = layer;
  ends.op.name = "embedding and head";
  ends.op.operator_name = "decoder";
  ends.op.layers = 1;
  return {layer, ends};
}

}  // namespace

std::vector<tax_row> predicted_chain(const chain_request& request, const decoder_config& config,
                                     const prediction_source& source) {
  if (request.keys == 0) {
    throw error(errc::unsupported,
                "--chain with --machine predicts steps of decoding; --keys 0 asks for a prompt, "
                "whose attention was never measured");
  }
  if (config.type == dtype::f32) {
    throw error(errc::unsupported,
                "--chain with --machine predicts GPUs; the model's weights are fp32, and have to "
                "be bf16 or fp16");
  }
  if (request.ranks > source.machine.gpus) {
    throw error(errc::unsupported,
                fmt::format("{} has {} GPUs; {} ranks need as many", source.machine.name,
                            source.machine.gpus, request.ranks));
  }
  std::vector<predictor> seeds;
  for (int i = 0; i < request.repeats; ++i)
    seeds.emplace_back(source.machine, source.known,
                       timing::simulation_options{.seed = static_cast<std::uint64_t>(i) + 1});
  const auto layers = layers_by_keys(request, config);
  const auto spreads = [&](int ranks, pattern how, launch_mode launch) {
    const timed_chain chain = chain_of(request, config, ranks);
    std::vector<double> of_layer;
    std::vector<double> of_ends;
    for (predictor& p : seeds) {
      chain_parts mean;
      for (const auto& [keys, count] : layers) {
        const chain_parts parts = predict_chain(p, chain, keys, how, launch);
        mean.layer += parts.layer * count / static_cast<double>(config.layers);
        mean.ends = parts.ends;
      }
      of_layer.push_back(mean.layer);
      of_ends.push_back(mean.ends);
    }
    return std::pair(spread_of(std::move(of_layer)), spread_of(std::move(of_ends)));
  };
  auto [layer, ends] = empty_rows(request, config);
  for (const chain_way& way : chain_ways) {
    const auto [of_layer, of_ends] = spreads(request.ranks, way.how, way.launch);
    layer.steps.push_back({way.step, way.ran, of_layer});
    ends.steps.push_back({way.step, way.ran, of_ends});
  }
  if (request.ranks > 1)
    std::tie(layer.compute, ends.compute) = spreads(1, pattern::automatic, launch_mode::graph);
  return {layer, ends};
}

}  // namespace untax::cli
