#include "engines/gpu/rooms/operator_host.hpp"

namespace untax::gpu {

run_arguments operator_host::allocate(const kernel_memory& need, room_pool* rooms) {
  run_arguments run = launcher_.arguments(need.element_bytes, need.threads);
  if (need.inbox) {
    room_ = room_pool::take(rooms, launcher_, need.inbox->bytes, need.inbox->content);
    run.inbox = room_.memory();
  }
  run.counters = launcher_.symmetric_memory<std::uint64_t>(need.counters, "counters");
  if (need.own_words) run.epochs = launcher_.own_words(*need.own_words);
  return run;
}

}  // namespace untax::gpu
