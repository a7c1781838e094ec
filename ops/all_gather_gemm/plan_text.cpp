#include <fmt/format.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/common/plan_agreement.hpp"

namespace untax {

std::string gather_plan::text() const {
  const auto senders = [&]() -> std::string {
    switch (who) {
      case gather_senders::comm_ctas:
        return fmt::format("{} blocks move", comm_ctas);
      case gather_senders::all_ctas_first:
        return "all blocks move, then multiply";
      case gather_senders::warps:
        return fmt::format("a warp in each of {} blocks moves", protocol.senders);
      case gather_senders::epilogue_warps:
        return fmt::format("{} warps that store move first", protocol.senders);
      case gather_senders::elsewhere:
        break;
    }
    return own_grid > 0 ? fmt::format("{} blocks of another kernel move", own_grid)
                        : fmt::format("copy engines move, on {} streams", streams);
  };
  const std::string what =
      packets ? "packets"
              : fmt::format("chunks of {} x {}{}", protocol.tile_m, protocol.panel_k,
                            protocol.gather_own ? ", A collected" : "");
  return fmt::format("{} ({}), {}; {}", senders(), name_of(protocol.move), what, gemm.text());
}

plan_lines gather_plan::agreed() const {
  const auto& [as_program, as_gemm, placement, communication_ctas, apart, dma_streams, by_packets,
               rate, by_tma_tiles, polled, all_sources, rows_of_segment, k_blocks_of_segment] =
      *this;
  // Which sources these are follows from the rank; how many there are, from the plan.
  return {fmt::format(
              "placement {}, communication CTAs {}, CTAs of their own grid {}, DMA streams {}, "
              "packets {}, rate {}, TMA tiles {}, pollers {}, sources {}, segment rows {}, "
              "segment k-blocks {}",
              static_cast<int>(placement), communication_ctas, apart, dma_streams, by_packets, rate,
              by_tma_tiles, polled, all_sources.size(), rows_of_segment, k_blocks_of_segment),
          fields_of(as_program), fields_of(as_gemm)};
}

}  // namespace untax
