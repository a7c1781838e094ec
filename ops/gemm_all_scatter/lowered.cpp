#include "ops/gemm_all_scatter/lowered.hpp"

namespace untax {

comm::lowered_workers sender_workers(const scatter_plan& plan,
                                     const gemm_all_scatter_protocol& how) {
  const int senders = plan.way == scatter_way::store_to_peers ? 0 : plan.protocol.senders;
  return {how.rank(), how.world(), senders, room_sets{1}};
}

comm::step_source sender_steps(const scatter_plan& plan, const gemm_all_scatter_protocol& how) {
  const int kernel = plan.streams > 0 ? 2 : 1;
  return [&how, kernel](int sender, std::uint64_t epoch, const program::sink& emit) {
    how.program(kernel, sender, epoch, emit);
  };
}

comm::transfer_lists lower_scatter(const scatter_plan& plan, const gemm_all_scatter_protocol& how) {
  return comm::lower(sender_workers(plan, how), sender_steps(plan, how));
}

comm::packed_lists packed_tiles(const comm::transfer_lists& lists,
                                const gemm_all_scatter_protocol& how) {
  return comm::pack(lists, 0, how.tiles().cols.whole.begin, true);
}

}  // namespace untax
