#include "ops/gemm_all_scatter/lowered.hpp"

namespace untax {
namespace {

/// Calls `part(list, workers, program)` for each of the lists of a plan.
template <class Lists, class Part>
void each_part(Lists& lists, const scatter_plan& plan, const gemm_all_scatter_protocol& how,
               const Part& part) {
  using sink = program::sink;
  const comm::lowered_workers one{how.rank(), how.world(), 1, room_sets{1}};
  const auto of_kernel = [&](int kernel) -> comm::step_source {
    return [&how, kernel](int worker, std::uint64_t epoch, const sink& emit) {
      how.program(kernel, worker, epoch, emit);
    };
  };
  if (plan.way == scatter_way::store_to_peers) {
    part(lists.open, one, comm::step_source([&](int, std::uint64_t epoch, const sink& emit) {
           how.open(0, epoch, emit);
         }));
    part(lists.close, one, comm::step_source([&](int, std::uint64_t epoch, const sink& emit) {
           how.close(0, epoch, emit);
         }));
    return;
  }
  part(lists.senders, sender_workers(plan, how), of_kernel(plan.streams > 0 ? 2 : 1));
  if (plan.streams == 0) return;
  part(lists.open, one, of_kernel(1));
  part(lists.close, one, of_kernel(3));
}

}  // namespace

comm::lowered_workers sender_workers(const scatter_plan& plan,
                                     const gemm_all_scatter_protocol& how) {
  return {how.rank(), how.world(), plan.protocol.senders, room_sets{1}};
}

scatter_lists lower_scatter(const scatter_plan& plan, const gemm_all_scatter_protocol& how) {
  scatter_lists lists;
  each_part(lists, plan, how,
            [](comm::transfer_lists& list, const comm::lowered_workers& of,
               const comm::step_source& program) { list = comm::lower(of, program); });
  return lists;
}

std::string difference(const scatter_lists& lists, const scatter_plan& plan,
                       const gemm_all_scatter_protocol& how) {
  std::string first;
  each_part(lists, plan, how,
            [&](const comm::transfer_lists& list, const comm::lowered_workers& of,
                const comm::step_source& program) {
              if (first.empty()) first = comm::difference(list, of, program);
            });
  return first;
}

}  // namespace untax
