#include <cstdint>

#include <untax/rma/device_copy.cuh>

#include "engines/sm90/packets/worker.cuh"

namespace untax::sm90 {
namespace {

/// The owner of a part: takes it from the root and passes it on to the other owners.
template <class Bits>
[[nodiscard]] __device__ bool relay_own_part(packet_worker<Bits>& worker,
                                             const packet_layout& how) {
  const range& own = how.messages.got[worker.rank()];
  const std::int64_t packets = packets_for<Bits>(own.size);
  const int lane = device_warp::thread_rank();
  for (std::int64_t warp = worker.first() - lane; warp < packets; warp += worker.step()) {
    const std::int64_t i = warp + lane;
    const auto wants = [&](int source) { return source == how.root && i < packets; };
    packet_column column;
    const int begin = how.root / packet_column::most * packet_column::most;
    if (!worker.receive(0, begin, i, wants, column)) return false;
    if (i >= packets) continue;
    std::uint64_t data = 0;
#pragma unroll
    for (int k = 0; k < packet_column::most; ++k) {
      if (begin + k == how.root) data = column.data[k];
    }
    worker.pass_on(i, data, how.root);
    untax::detail::unpack(data, worker.out(own), i, own.size);
  }
  return true;
}

template <class Bits>
__global__ void __launch_bounds__(packet_threads, 2)
    relay(const __grid_constant__ packet_layout how, const __grid_constant__ run_arguments run) {
  if (run.launch < 0) return;
  packet_worker<Bits> worker(how, run);
  const bool is_root = worker.rank() == how.root;
  const auto gets = [&](int peer) {
    if (is_root) return std::int64_t{0};
    return how.messages.got[peer == how.root ? worker.rank() : peer].size;
  };
  bool well = worker.reserve(gets);
  if (well && is_root) {
    for (std::int64_t i = worker.first(); i < how.capacity; i += worker.step()) worker.send(i);
    const range all{0, how.total};
    const Bits* own = worker.in(all);
    Bits* to = worker.out(all);
    if (own != to) untax::detail::move_elements(device_grid(), to, own, how.total);
  } else if (well) {
    well = relay_own_part(worker, how) &&
           worker.collect(1, [&](int source) { return source == how.root ? 0 : gets(source); });
  }
  worker.finish(well, gets);
}

template <class Bits>
transfer_code code_with(packet_layout how, int blocks) {
  how.capacity = packets_for<Bits>(how.messages.largest);
  return packet_code<Bits>(reinterpret_cast<const void*>(&relay<Bits>), how, blocks);
}

}  // namespace

transfer_code packet_relay(const message_table& messages, dtype type, int root, std::int64_t count,
                           int blocks) {
  const packet_layout how{.messages = messages, .passes_on = true, .root = root, .total = count};
  return type == dtype::f32 ? code_with<std::uint32_t>(how, blocks)
                            : code_with<std::uint16_t>(how, blocks);
}

}  // namespace untax::sm90
