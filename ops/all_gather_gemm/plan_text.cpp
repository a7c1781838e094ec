#include <fmt/format.h>

#include "ops/all_gather_gemm/device_plan.hpp"

namespace untax {

std::string gather_plan::text() const {
  const auto movers = [&]() -> std::string {
    switch (who) {
      case gather_movers::leading_blocks:
        return fmt::format("{} blocks move", leading);
      case gather_movers::all_blocks:
        return "all blocks move, then multiply";
      case gather_movers::warps:
        return fmt::format("a warp in each of {} blocks moves", protocol.movers);
      case gather_movers::storers:
        return fmt::format("{} warps that store move first", protocol.movers);
      case gather_movers::elsewhere:
        break;
    }
    return apart > 0 ? fmt::format("{} blocks of another kernel move", apart)
                     : fmt::format("copy engines move, on {} streams", streams);
  };
  const std::string what =
      packets ? "packets"
              : fmt::format("pieces of {} x {}{}", protocol.tile_m, protocol.panel_k,
                            protocol.collect ? ", A collected" : "");
  return fmt::format("{} ({}), {}; {}", movers(), name_of(protocol.move), what, gemm.text());
}

}  // namespace untax
