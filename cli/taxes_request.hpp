#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <untax/core/memory_kind.hpp>
#include <untax/taxes/layer.hpp>
#include <untax/taxes/report.hpp>

namespace CLI {
class App;
}

namespace untax::cli {

/// The most ranks of a prediction, which runs nothing, and of a measurement.
inline constexpr int most_predicted_ranks = 4096;
inline constexpr int most_measured_ranks = 16;

/// The options of `untax taxes`, as written on the command line.
struct taxes_request {
  std::filesystem::path model;
  std::string backend = "auto";
  int ranks = 4;
  int tokens = 64;
  std::string layer = "sequence-parallel";  ///< how activations lie between GEMMs
  std::int64_t keys = -1;                   ///< below 0: untax chooses
  std::string operator_name;
  layer_operation one{.name = "", .operator_name = "", .m = 1024, .n = 7168, .k = 8192};
  std::string gather = "rows";
  std::string type = "bf16";
};

/// The measurements that follow from a request.
struct taxes_plan {
  memory_kind backend = memory_kind::host;
  std::vector<layer_operation> operations;
};

/// Keys of each sequence; 0: the tokens are not those of a batch that decodes.
[[nodiscard]] std::int64_t keys_of(const taxes_request& request, memory_kind backend);

void add_request_options(CLI::App& verb, taxes_request& request);

/// Plans a request, and sets the fields of `report` that describe it. Throws `invalid_argument` for
/// a request that contradicts itself.
[[nodiscard]] taxes_plan plan_of(const CLI::App& verb, const taxes_request& request,
                                 tax_report& report);

}  // namespace untax::cli
