#include <cstdint>

#include <untax/rma/device_copy.cuh>

#include "engines/sm90/packets/worker.cuh"

namespace untax::sm90 {
namespace {

template <class Bits>
__global__ void __launch_bounds__(packet_threads)
    exchange(const __grid_constant__ packet_layout how, const __grid_constant__ run_arguments run) {
  if (run.launch < 0) return;
  packet_worker<Bits> worker(how, run);
  const auto gets = [&](int peer) { return how.messages.got[peer].size; };
  bool well = worker.reserve(gets);
  if (well) {
    for (std::int64_t i = worker.first(); i < how.capacity; i += worker.step()) worker.send(i);
    const Bits* own = worker.in(how.messages.sent[worker.rank()]);
    Bits* to = worker.out(how.messages.got[worker.rank()]);
    if (own != to) {
      untax::detail::move_elements(device_grid(), to, own, how.messages.sent[worker.rank()].size);
    }
    well = worker.collect(0);
  }
  worker.finish(well, gets);
}

template <class Bits>
transfer_code code_with(const message_table& messages, int blocks) {
  const packet_layout how{.messages = messages, .capacity = packets_for<Bits>(messages.largest)};
  return packet_code<Bits>(reinterpret_cast<const void*>(&exchange<Bits>), how, blocks);
}

}  // namespace

transfer_code packet_exchange(const message_table& messages, dtype type, int blocks) {
  return type == dtype::f32 ? code_with<std::uint32_t>(messages, blocks)
                            : code_with<std::uint16_t>(messages, blocks);
}

}  // namespace untax::sm90
