#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include <untax/taxes/report.hpp>

#include "taxes_predicted.hpp"

namespace untax::cli {

/// A measurement of a whole model.
struct chain_request {
  std::filesystem::path model;  ///< config.json, or a folder with one
  bool on_gpus = false;
  int ranks = 1;
  std::int64_t tokens = 1;  ///< sequences of a step, or tokens of a prompt
  std::int64_t keys = 0;    ///< of each sequence of a step; 0: a prompt is measured
  std::int64_t layers = 0;  ///< the first ones of the model; 0: all
  int repeats = 20;
};

/// Measures the chain of a model's layers by library calls, eagerly (E0) and in graphs (E1), by
/// operators one after another (E2) and by those that overlap and fuse (E4), in turn, and fills
/// `report`. A row is a layer; another row is embedding and head. Calls `progress`, if it is set,
/// with the number of finished runs and that of all runs. Throws as `decoder` does.
void measure_chain(const chain_request& request, tax_report& report,
                   const std::function<void(std::int64_t, std::int64_t)>& progress);

/// As above, for a step of decoding, predicted for a machine; `request.repeats` are simulations.
void predict_chain_taxes(const chain_request& request, const prediction_source& source,
                         tax_report& report);

}  // namespace untax::cli
