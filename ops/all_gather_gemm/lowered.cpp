#include "ops/all_gather_gemm/lowered.hpp"

#include "engines/gpu/comm/placement.hpp"

namespace untax {

comm::lowered_workers sender_workers(const gather_plan& plan, const all_gather_gemm_protocol& how) {
  return {how.rank(), how.world(), plan.protocol.senders, how.sets()};
}

comm::step_source sender_steps(const all_gather_gemm_protocol& how) {
  return [&](int sender, std::uint64_t epoch, const program::sink& emit) {
    how.send(sender, epoch, emit);
  };
}

comm::transfer_lists lower_gather(const gather_plan& plan, const all_gather_gemm_protocol& how) {
  return comm::lower(sender_workers(plan, how), sender_steps(how));
}

bool walks_lists(const gather_plan& plan, const all_gather_gemm_protocol& how) {
  return !plan.packets && !how.pulls() && plan.streams == 0;
}

comm::packed_lists packed_chunks(const comm::transfer_lists& lists,
                                 const all_gather_gemm_protocol& how) {
  return comm::pack(lists, 0, 0, how.fans_out());
}

gather_plan in_packets(const gather_plan& plan, int columns, int senders) {
  gather_plan cut = plan;
  cut.protocol.tile_m = 1;
  cut.protocol.panel_k = cut.protocol.chunk_cross = columns;
  cut.protocol.raster_rows = cut.protocol.k_interleave = 1;
  cut.protocol.fan_out = true;
  cut.protocol.senders = senders;
  return cut;
}

int packet_threads_of(const gather_plan& plan) {
  if (plan.who == gather_senders::comm_ctas) return plan.comm_ctas * gpu::block_threads;
  return packet_thread_beside({plan.who, true, plan.gemm.blocks(), plan.protocol.senders}, 0, 0)
      .threads;
}

}  // namespace untax
