#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/taxes/report.hpp>

namespace untax::cli {

/// A step of the ablation.
struct chain_way {
  const char* step;
  const char* ran;
  pattern how;
  launch_mode launch;
};

inline constexpr std::array chain_ways = {
    chain_way{"E0", "bulk_library, eager", pattern::bulk_library, launch_mode::eager},
    chain_way{"E1", "bulk_library, graph", pattern::bulk_library, launch_mode::graph},
    chain_way{"E2", "bulk_synchronous, graph", pattern::bulk_synchronous, launch_mode::graph},
    chain_way{"E4", "fused operators, graph", pattern::automatic, launch_mode::graph}};

/// The seconds of each run of a way: of the model, and of its first layer with embedding and head.
struct chain_seconds {
  std::vector<double> model, single;
};

struct chain_times {
  std::vector<chain_seconds> ways;     ///< as `chain_ways`
  std::optional<chain_seconds> alone;  ///< of a rank's part that sends nothing
};

/// The rows of a model of `op.layers` layers: a layer, and embedding and head, which together are
/// the model. The time of a layer is the difference of model and first layer, divided by the number
/// of layers between them. If chance may have moved that by more than its size, or if there is one
/// layer, there is one row for the whole model.
[[nodiscard]] std::vector<tax_row> chain_rows(const chain_times& times, const layer_operation& op);

}  // namespace untax::cli
