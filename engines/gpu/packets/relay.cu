#include <cstdint>

#include <untax/rma/device_copy.cuh>

#include "engines/gpu/packets/worker.cuh"

namespace untax::gpu {
namespace {

/// Run by the owner of a part: receives it from the root and passes it on to the other owners.
template <class Bits, int depth>
[[nodiscard]] __device__ bool relay_own_part(packet_worker<Bits, depth>& worker,
                                             const packet_layout& how) {
  using column = packet_column<depth>;
  const range& own = how.messages.got[worker.rank()];
  const std::int64_t packets = packets_for<Bits>(own.size);
  const int lane = device_warp::thread_rank();
  for (std::int64_t warp = worker.first() - lane; warp < packets; warp += worker.stride()) {
    const std::int64_t first = warp + lane;
    const auto wants = [&](int source, std::int64_t which) {
      return source == how.root && which < packets;
    };
    column all;
    const int begin = how.root / column::peers * column::peers;
    if (!worker.receive(0, begin, first, wants, all)) return false;
#pragma unroll
    for (int k = 0; k < column::most; ++k) {
      if ((all.wanted >> k & 1U) == 0) continue;
      const std::int64_t i = first + k % depth * worker.step();
      worker.pass_on(i, all.data[k], how.root);
      untax::detail::unpack(all.data[k], worker.out(own), i, own.size);
    }
  }
  return true;
}

template <class Bits, int depth>
__global__ void __launch_bounds__(packet_threads)
    relay(const __grid_constant__ packet_layout how, const __grid_constant__ run_arguments run) {
  if (run.launch < 0) return;
  packet_worker<Bits, depth> worker(how, run);
  const bool is_root = worker.rank() == how.root;
  const auto gets = [&](int peer) {
    if (is_root) return std::int64_t{0};
    return how.messages.got[peer == how.root ? worker.rank() : peer].size;
  };
  if (is_root) {
    const auto early = worker.load_early();
    const bool well = worker.reserve(gets);
    if (well) {
      worker.send_all(early);
      const range all{0, how.total};
      const Bits* own = worker.in(all);
      Bits* to = worker.out(all);
      if (own != to) untax::detail::move_elements(device_grid(), to, own, how.total);
    }
    return worker.finish(well);
  }
  const bool well =
      worker.reserve(gets) && relay_own_part(worker, how) &&
      worker.collect(1, [&](int source) { return source == how.root ? 0 : gets(source); });
  worker.finish(well);
}

template <class Bits>
collective_kernel code_with(packet_layout how, int blocks) {
  how.capacity = packets_for<Bits>(how.messages.largest);
  return with_depth(how.messages.ranks, [&](auto depth) {
    const auto* kernel = reinterpret_cast<const void*>(&relay<Bits, depth>);
    return packet_code<Bits>(kernel, how, blocks);
  });
}

}  // namespace

collective_kernel packet_relay(const message_table& messages, dtype type, int root,
                               std::int64_t count, int blocks) {
  const packet_layout how{.messages = messages,
                          .slabs = messages.ranks,
                          .passes_on = true,
                          .root = root,
                          .total = count};
  return type == dtype::f32 ? code_with<std::uint32_t>(how, blocks)
                            : code_with<std::uint16_t>(how, blocks);
}

}  // namespace untax::gpu
