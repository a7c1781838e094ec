#include <cstdint>

#include "engines/sm90/packets/worker.cuh"
#include "engines/sm90/transfer/element.cuh"

namespace untax::sm90 {
namespace {

template <class Element>
using bits_of = typename word_of_elements<Element>::bits;

/// What all ranks have for packet `i` of the own part, combined. By all lanes of a warp.
template <class Element>
[[nodiscard]] __device__ bool combine_packet(packet_worker<bits_of<Element>>& worker,
                                             const packet_layout& how, std::int64_t i,
                                             std::uint64_t& result) {
  const range& own = how.messages.sent[worker.rank()];
  const bool has = i < packets_for<bits_of<Element>>(own.size);
  const std::uint64_t mine = has ? untax::detail::pack(worker.in(own), i, own.size) : 0;
  combination<Element, 2> all;
  for (int begin = 0; begin < worker.ranks(); begin += packet_column::most) {
    packet_column column;
    if (!worker.receive(
            0, begin, i, [&](int) { return has; }, column))
      return false;
#pragma unroll
    for (int k = 0; k < packet_column::most; ++k) {
      const int rank = begin + k;
      if (rank >= worker.ranks()) continue;
      const std::uint64_t data = rank == worker.rank() ? mine : column.data[k];
      const std::uint32_t words[2] = {static_cast<std::uint32_t>(data),
                                      static_cast<std::uint32_t>(data >> 32U)};
      if (rank == 0) {
        all.start(words);
      } else {
        all.add(how.how, words);
      }
    }
  }
  std::uint32_t words[2];
  all.finish(words);
  result = words[0] | std::uint64_t{words[1]} << 32U;
  return true;
}

template <class Element>
[[nodiscard]] __device__ bool exchange_and_combine(packet_worker<bits_of<Element>>& worker,
                                                   const packet_layout& how) {
  for (std::int64_t i = worker.first(); i < how.capacity; i += worker.step()) worker.send(i);
  const range& own = how.messages.sent[worker.rank()];
  const range& to = how.messages.got[worker.rank()];
  const std::int64_t packets = packets_for<bits_of<Element>>(own.size);
  const int lane = device_warp::thread_rank();
  for (std::int64_t warp = worker.first() - lane; warp < packets; warp += worker.step()) {
    const std::int64_t i = warp + lane;
    std::uint64_t result = 0;
    if (!combine_packet<Element>(worker, how, i, result)) return false;
    if (i >= packets) continue;
    if (how.passes_on) worker.pass_on(i, result);
    untax::detail::unpack(result, worker.out(to), i, to.size);
  }
  return !how.passes_on || worker.collect(1);
}

template <class Element>
__global__ void __launch_bounds__(packet_threads)
    reduce(const __grid_constant__ packet_layout how, const __grid_constant__ run_arguments run) {
  if (run.launch < 0) return;
  packet_worker<bits_of<Element>> worker(how, run);
  // With two phases every message is answered in one of them.
  const auto gets = [&](int peer) {
    return how.messages.sent[how.passes_on ? peer : worker.rank()].size;
  };
  bool well = worker.reserve(gets);
  if (well) well = exchange_and_combine<Element>(worker, how);
  worker.finish(well, gets);
}

template <class Element>
transfer_code code_with(packet_layout how, int blocks) {
  how.capacity = packets_for<bits_of<Element>>(how.messages.largest);
  return packet_code<bits_of<Element>>(reinterpret_cast<const void*>(&reduce<Element>), how,
                                       blocks);
}

}  // namespace

transfer_code packet_reduction(const message_table& messages, dtype type, reduction how,
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

}  // namespace untax::sm90
