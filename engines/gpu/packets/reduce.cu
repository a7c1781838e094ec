#include <cstdint>

#include "engines/gpu/collectives/element.cuh"
#include "engines/gpu/packets/worker.cuh"

namespace untax::gpu {
namespace {

template <class Element>
using bits_of = typename word_of_elements<Element>::bits;

/// Combines the contributions of all ranks to a batch of the own part, which begins at packet
/// `first`. Returns false if a wait failed. All lanes of the warp must call this.
template <class Element, int depth>
[[nodiscard]] __device__ bool combine_batch(packet_worker<bits_of<Element>, depth>& worker,
                                            const packet_layout& how, std::int64_t first,
                                            std::uint64_t (&results)[depth]) {
  using column = packet_column<depth>;
  const range& own = how.messages.sent[worker.rank()];
  const std::int64_t packets = packets_for<bits_of<Element>>(own.size);
  std::uint64_t mine[depth];
#pragma unroll
  for (int d = 0; d < depth; ++d) {
    const std::int64_t i = first + d * worker.step();
    mine[d] = i < packets ? untax::detail::pack(worker.in(own), i, own.size) : 0;
  }
  combination<Element, 2> all[depth];
  for (int begin = 0; begin < worker.ranks(); begin += column::peers) {
    column arrived;
    const auto wants = [&](int /*source*/, std::int64_t which) { return which < packets; };
    if (!worker.receive(0, begin, first, wants, arrived)) return false;
#pragma unroll
    for (int k = 0; k < column::most; ++k) {
      const int rank = begin + k / depth;
      if (rank >= worker.ranks()) continue;
      const std::uint64_t data = rank == worker.rank() ? mine[k % depth] : arrived.data[k];
      const std::uint32_t words[2] = {static_cast<std::uint32_t>(data),
                                      static_cast<std::uint32_t>(data >> 32U)};
      if (rank == 0) {
        all[k % depth].start(words);
      } else {
        all[k % depth].add(how.how, words);
      }
    }
  }
#pragma unroll
  for (int d = 0; d < depth; ++d) {
    std::uint32_t words[2];
    all[d].finish(words);
    results[d] = words[0] | std::uint64_t{words[1]} << 32U;
  }
  return true;
}

template <class Element, int depth>
[[nodiscard]] __device__ bool combine_all(packet_worker<bits_of<Element>, depth>& worker,
                                          const packet_layout& how) {
  const range& own = how.messages.sent[worker.rank()];
  const range& to = how.messages.got[worker.rank()];
  const std::int64_t packets = packets_for<bits_of<Element>>(own.size);
  const int lane = device_warp::thread_rank();
  for (std::int64_t warp = worker.first() - lane; warp < packets; warp += worker.stride()) {
    const std::int64_t first = warp + lane;
    std::uint64_t results[depth] = {};
    if (!combine_batch<Element>(worker, how, first, results)) return false;
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      const std::int64_t i = first + d * worker.step();
      if (i >= packets) continue;
      if (how.passes_on) worker.pass_on(i, results[d]);
      untax::detail::unpack(results[d], worker.out(to), i, to.size);
    }
  }
  return !how.passes_on || worker.collect(1);
}

template <class Element, int depth>
__global__ void __launch_bounds__(packet_threads)
    reduce(const __grid_constant__ packet_layout how, const __grid_constant__ run_arguments run) {
  if (run.launch < 0) return;
  packet_worker<bits_of<Element>, depth> worker(how, run);
  const auto early = worker.load_early();
  // With two phases the peer answers each message of one phase with a message of the other phase.
  bool well = worker.reserve(
      [&](int peer) { return how.messages.sent[how.passes_on ? peer : worker.rank()].size; });
  if (well) {
    worker.send_all(early);
    well = combine_all<Element>(worker, how);
  }
  worker.finish(well);
}

template <class Element>
collective_kernel code_with(packet_layout how, int blocks) {
  how.capacity = packets_for<bits_of<Element>>(how.messages.largest);
  return with_depth(how.messages.ranks, [&](auto depth) {
    const auto* kernel = reinterpret_cast<const void*>(&reduce<Element, depth>);
    return packet_code<bits_of<Element>>(kernel, how, blocks);
  });
}

}  // namespace

collective_kernel packet_reduction(const message_table& messages, dtype type, reduction how,
                                   bool passes_on, int blocks) {
  const packet_layout layout{.messages = messages, .how = how, .passes_on = passes_on};
  switch (type) {
    case dtype::f32:
      return code_with<float>(layout, blocks);
    case dtype::f16:
      return code_with<f16>(layout, blocks);
    case dtype::bf16:
      return code_with<bf16>(layout, blocks);
  }
  return {};
}

}  // namespace untax::gpu
