#include <cstdint>

#include <untax/rma/device_copy.cuh>

#include "engines/gpu/packets/worker.cuh"

namespace untax::gpu {
namespace {

template <class Bits, int depth>
__global__ void __launch_bounds__(packet_threads)
    exchange(const __grid_constant__ packet_layout how, const __grid_constant__ run_arguments run) {
  if (run.launch < 0) return;
  packet_worker<Bits, depth> worker(how, run);
  const auto early = worker.load_early();
  bool well = worker.reserve([&](int peer) { return how.messages.got[peer].size; });
  if (well) {
    worker.send_all(early);
    const Bits* own = worker.in(how.messages.sent[worker.rank()]);
    Bits* to = worker.out(how.messages.got[worker.rank()]);
    if (own != to) {
      untax::detail::move_elements(device_grid(), to, own, how.messages.sent[worker.rank()].size);
    }
    well = worker.collect(0);
  }
  worker.finish(well);
}

template <class Bits>
collective_kernel code_with(const message_table& messages, int blocks) {
  const packet_layout how{.messages = messages,
                          .capacity = packets_for<Bits>(messages.largest),
                          .slabs = messages.ranks};
  return with_depth(messages.ranks, [&](auto depth) {
    const auto* kernel = reinterpret_cast<const void*>(&exchange<Bits, depth>);
    return packet_code<Bits>(kernel, how, blocks);
  });
}

}  // namespace

collective_kernel packet_exchange(const message_table& messages, dtype type, int blocks) {
  return type == dtype::f32 ? code_with<std::uint32_t>(messages, blocks)
                            : code_with<std::uint16_t>(messages, blocks);
}

}  // namespace untax::gpu
