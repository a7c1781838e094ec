#include "taxes_chain_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <untax/taxes/timing.hpp>

namespace untax::cli {
namespace {

/// A part of a way's time: `median`, and a spread as wide as that of `seconds`, which may be below
/// 0, as differences may.
spread around(double median, std::vector<double> seconds) {
  const spread s = spread_of(std::move(seconds));
  const double p10 = std::max(0.0, median + (s.p10 - s.median));
  return {median, p10, p10 + (s.p90 - s.p10)};
}

/// A way's time, divided into that of a layer and that of embedding and head; together they are the
/// model's time.
struct divided_time {
  spread layer, ends;
};

divided_time divided(const chain_seconds& seconds, std::int64_t layers) {
  const auto more = static_cast<double>(layers - 1);
  std::vector<double> layer;
  std::vector<double> ends;
  for (std::size_t i = 0; i < seconds.model.size(); ++i) {
    layer.push_back((seconds.model[i] - seconds.single[i]) / more);
    ends.push_back(seconds.single[i] - layer.back());
  }
  const double single = spread_of(seconds.single).median;
  const double median = (spread_of(seconds.model).median - single) / more;
  return {around(median, std::move(layer)), around(single - median, std::move(ends))};
}

/// Whether layers took more time than chance moves a median of so many runs, and the rest took some
/// time.
bool are_told_apart(const std::vector<divided_time>& times, std::size_t repeats) {
  const double root = std::sqrt(static_cast<double>(repeats));
  return std::ranges::all_of(times, [&](const divided_time& t) {
    return t.layer.median > (t.layer.p90 - t.layer.p10) / root && t.ends.median > 0;
  });
}

}  // namespace

std::vector<tax_row> chain_rows(const chain_times& times, const layer_operation& op) {
  tax_row model;
  model.op = op;
  model.op.name = "model";
  model.op.operator_name = "decoder";
  model.op.layers = 1;
  std::vector<divided_time> parts;
  if (op.layers > 1) {
    for (const chain_seconds& way : times.ways) parts.push_back(divided(way, op.layers));
    if (times.alone) parts.push_back(divided(*times.alone, op.layers));
  }
  if (parts.empty() || !are_told_apart(parts, times.ways.front().model.size())) {
    for (std::size_t i = 0; i < chain_ways.size(); ++i) {
      model.steps.push_back(
          {chain_ways[i].step, chain_ways[i].ran, spread_of(times.ways[i].model)});
    }
    if (times.alone) model.compute = spread_of(times.alone->model);
    return {model};
  }
  tax_row layer;
  layer.op = op;
  layer.op.name = "layer";
  layer.op.operator_name = "decoder_layer";
  tax_row ends = std::move(model);
  ends.op.name = "embedding and head";
  for (std::size_t i = 0; i < chain_ways.size(); ++i) {
    layer.steps.push_back({chain_ways[i].step, chain_ways[i].ran, parts[i].layer});
    ends.steps.push_back({chain_ways[i].step, chain_ways[i].ran, parts[i].ends});
  }
  if (times.alone) {
    layer.compute = parts.back().layer;
    ends.compute = parts.back().ends;
  }
  return {layer, ends};
}

}  // namespace untax::cli
