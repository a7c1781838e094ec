#include <fmt/format.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/common/plan_agreement.hpp"

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

plan_lines gather_plan::agreed() const {
  const auto& [as_program, as_gemm, placement, leading_ctas, own_grid, dma_streams, by_packets,
               rate, by_boxes, polled, all_sources, rows_of_segment, slices_of_segment] = *this;
  // Which sources these are follows from the rank; how many there are, from the plan.
  return {
      fmt::format("placement {}, leading CTAs {}, CTAs of their own grid {}, DMA streams {}, "
                  "packets {}, rate {}, boxes {}, pollers {}, sources {}, segment rows {}, "
                  "segment k-blocks {}",
                  static_cast<int>(placement), leading_ctas, own_grid, dma_streams, by_packets,
                  rate, by_boxes, polled, all_sources.size(), rows_of_segment, slices_of_segment),
      fields_of(as_program), fields_of(as_gemm)};
}

}  // namespace untax
