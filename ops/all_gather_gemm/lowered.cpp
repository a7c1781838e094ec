#include "ops/all_gather_gemm/lowered.hpp"

#include "engines/gpu/comm/lower.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "ops/common/nowhere.hpp"

namespace untax {

namespace {

comm::lowered_workers senders_of(const gather_plan& plan, const all_gather_gemm_protocol& how) {
  return {how.rank(), how.world(), plan.protocol.senders, how.sets(),
          plan.protocol.raster_rows * plan.protocol.tile_m};
}
comm::lowered_workers last_of(const all_gather_gemm_protocol& how) {
  return {how.rank(), how.world(), 1, how.sets(), 0};
}
comm::step_source sends(const all_gather_gemm_protocol& how) {
  return [&](int sender, std::uint64_t epoch, const program::sink& emit) {
    how.send(sender, epoch, emit);
  };
}
comm::step_source finish(const all_gather_gemm_protocol& how) {
  return [&](int, std::uint64_t epoch, const program::sink& emit) { how.finish(0, epoch, emit); };
}

}  // namespace

gather_lists lower_gather(const gather_plan& plan, const all_gather_gemm_protocol& how) {
  return {comm::lower(senders_of(plan, how), sends(how)), comm::lower(last_of(how), finish(how))};
}

std::string difference(const gather_lists& lists, const gather_plan& plan,
                       const all_gather_gemm_protocol& how) {
  const std::string of_senders = comm::difference(lists.senders, senders_of(plan, how), sends(how));
  return !of_senders.empty() ? of_senders : comm::difference(lists.last, last_of(how), finish(how));
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

gather_numbers gather_numbers::of(const all_gather_gemm_problem& problem, const gather_plan& plan,
                                  const all_gather_gemm_protocol& how) {
  gather_numbers made;
  made.sending = sending_grid::of(how);
  made.receiving = receiving_grid::of(how);
  made.arrivals = arrival_grid::of(how);
  made.segments = gather_segments::of(plan, how);
  if (plan.packets) made.panel = packet_panel::of(how);
  made.moved.run.world.rank = how.rank();
  made.moved.run.in = static_cast<const std::byte*>(nowhere::pointer(nowhere::a));
  made.moved.run.inbox = nowhere::inbox_of(how.rank());
  describe_moved(made.moved, plan, how);
  made.maps = maps_of(
      problem, plan, how,
      {nowhere::pointer(nowhere::a), nowhere::pointer(nowhere::b), nowhere::pointer(nowhere::c)},
      nowhere::inbox_of(how.rank()));
  return made;
}

place gather_numbers::at(const void* data, const all_gather_gemm_problem& problem,
                         const all_gather_gemm_protocol& how) {
  const std::int64_t address = nowhere::address(data);
  const auto in = [&](operand of, int rank, std::int64_t begin, std::int64_t columns) {
    const std::int64_t element = (address - begin) / 2;
    return place{of, rank, element / columns, element % columns};
  };
  if (address >= nowhere::inbox) {
    const auto rank = static_cast<int>((address - nowhere::inbox) / nowhere::span);
    const std::int64_t begin = nowhere::inbox + rank * nowhere::span;
    // Behind the inbox, at a multiple of 512 bytes, lies the outbox.
    const std::int64_t inbox_bytes =
        round_up<std::int64_t>(how.inbox().rows * how.inbox().cols * 2, 512);
    if (address - begin < inbox_bytes || how.outbox().rows == 0)
      return in(operand::inbox, rank, begin, problem.k);
    return in(operand::outbox, rank, begin + inbox_bytes, how.outbox().cols);
  }
  if (address >= nowhere::c) return in(operand::c, how.rank(), nowhere::c, problem.n);
  if (address >= nowhere::b) return in(operand::b, how.rank(), nowhere::b, problem.k);
  if (address < nowhere::a || how.shard(how.rank()).empty()) return {};
  return in(operand::a, how.rank(), nowhere::a,
            how.by_rows() ? problem.k : how.shard(how.rank()).size);
}

}  // namespace untax
