#pragma once

#include <vector>

#include <untax/decoder/config.hpp>
#include <untax/taxes/report.hpp>

#include "taxes_chain.hpp"
#include "taxes_predicted.hpp"

namespace untax::cli {

/// The rows of `measure_chain` for a step of decoding, predicted for a machine. `request.repeats`:
/// simulations. Throws `unsupported` for prompts, for fp32, and for more ranks than the machine has
/// GPUs.
[[nodiscard]] std::vector<tax_row> predicted_chain(const chain_request& request,
                                                   const decoder_config& config,
                                                   const prediction_source& source);

}  // namespace untax::cli
