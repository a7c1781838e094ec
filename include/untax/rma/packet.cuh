#pragma once

#include <cstdint>
#include <type_traits>

#include <untax/core/host_device.hpp>
#include <untax/rma/check.hpp>
#include <untax/rma/device_group.cuh>
#include <untax/rma/order.hpp>

// Small messages whose data are their own flag. There is no separate signal, which would have to
// wait for the data. A packet is one 16-byte access, which arrives whole or not at all.
//
// Half of a packet is the flag. Twelve bytes of data and four of flag would carry half as much
// again, but a 32-bit epoch wraps around within hours, and elements of 8 bytes would not fit.
// Messages of this kind are so small that latency matters more.

namespace untax {

/// Eight bytes of data and the epoch of the message that they belong to.
struct alignas(16) packet {
  std::uint64_t data = 0;
  std::uint64_t epoch = 0;  ///< zero at first, then only raised
};

/// Element types that packets can carry: of 1, 2, 4 or 8 bytes.
template <class T>
concept packed_element = transferable<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// The number of packets of a message of `count` elements.
template <packed_element T>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t packets_for(std::int64_t count) noexcept {
  constexpr auto each = static_cast<std::int64_t>(sizeof(packet::data) / sizeof(T));
  return (count + each - 1) / each;
}

namespace detail {

/// st.relaxed.sys.b128 or st.release.sys.b128: one access.
template <memory_order order = memory_order::relaxed>
__device__ void store_packet(packet* to, const packet& value) noexcept {
  static_assert(order == memory_order::relaxed || order == memory_order::release);
  if constexpr (order == memory_order::release) {
    asm volatile(
        "{\n\t.reg .b128 whole;\n\tmov.b128 whole, {%1, %2};\n\t"
        "st.release.sys.global.b128 [%0], whole;\n\t}"
        :
        : "l"(__cvta_generic_to_global(to)), "l"(value.data), "l"(value.epoch)
        : "memory");
  } else {
    asm volatile(
        "{\n\t.reg .b128 whole;\n\tmov.b128 whole, {%1, %2};\n\t"
        "st.relaxed.sys.global.b128 [%0], whole;\n\t}"
        :
        : "l"(__cvta_generic_to_global(to)), "l"(value.data), "l"(value.epoch)
        : "memory");
  }
}

/// ld.relaxed.sys.b128 or ld.acquire.sys.b128.
template <memory_order order = memory_order::relaxed>
[[nodiscard]] __device__ packet load_packet(const packet* from) noexcept {
  static_assert(order == memory_order::relaxed || order == memory_order::acquire);
  packet value;
  if constexpr (order == memory_order::acquire) {
    asm volatile(
        "{\n\t.reg .b128 whole;\n\tld.acquire.sys.global.b128 whole, [%2];\n\t"
        "mov.b128 {%0, %1}, whole;\n\t}"
        : "=l"(value.data), "=l"(value.epoch)
        : "l"(__cvta_generic_to_global(from))
        : "memory");
  } else {
    asm volatile(
        "{\n\t.reg .b128 whole;\n\tld.relaxed.sys.global.b128 whole, [%2];\n\t"
        "mov.b128 {%0, %1}, whole;\n\t}"
        : "=l"(value.data), "=l"(value.epoch)
        : "l"(__cvta_generic_to_global(from))
        : "memory");
  }
  return value;
}

template <class T>
union packet_data {
  std::uint64_t word;
  T elements[sizeof(packet::data) / sizeof(T)];
};

/// Whether the data of packet `i` of a message can be read or written as one word.
template <class T>
[[nodiscard]] __device__ bool is_whole(const T* message, std::int64_t i, std::int64_t count) {
  constexpr auto each = static_cast<std::int64_t>(sizeof(packet::data) / sizeof(T));
  return reinterpret_cast<std::uintptr_t>(message) % 8 == 0 && (i + 1) * each <= count;
}

/// The data of packet `i` of a message, with zeros after its end.
template <class T>
[[nodiscard]] __device__ std::uint64_t pack(const T* from, std::int64_t i, std::int64_t count) {
  constexpr auto each = static_cast<std::int64_t>(sizeof(packet::data) / sizeof(T));
  if (is_whole(from, i, count)) return reinterpret_cast<const std::uint64_t*>(from)[i];
  packet_data<T> packed{0};
#pragma unroll
  for (int k = 0; k < each; ++k) {
    if (i * each + k < count) packed.elements[k] = from[i * each + k];
  }
  return packed.word;
}

template <class T>
__device__ void unpack(std::uint64_t data, T* to, std::int64_t i, std::int64_t count) {
  constexpr auto each = static_cast<std::int64_t>(sizeof(packet::data) / sizeof(T));
  if (is_whole(to, i, count)) {
    reinterpret_cast<std::uint64_t*>(to)[i] = data;
    return;
  }
  const packet_data<T> packed{data};
#pragma unroll
  for (int k = 0; k < each; ++k) {
    if (i * each + k < count) to[i * each + k] = packed.elements[k];
  }
}

/// Sends a message. The first packet of each thread has `order`. The first packet of the message is
/// one of them, and a receiver of the message also loads that one.
template <memory_order order, class G, class T>
__device__ void send_message(const G& group, packet* to, const T* from, std::int64_t count,
                             std::uint64_t epoch) {
  const std::int64_t packets = packets_for<T>(count);
  std::int64_t i = group.thread_rank();
  if (i < packets) store_packet<order>(to + i, {pack<T>(from, i, count), epoch});
#pragma unroll 1
  for (i += group.size(); i < packets; i += group.size())
    store_packet(to + i, {pack<T>(from, i, count), epoch});
}

}  // namespace detail

/// Sends `count` elements to a peer as packets_for(count) packets in its symmetric memory, marked
/// `epoch`, which has to be higher than that of any message that these packets held before. The
/// peer takes them with `receive_packets`. Before they are used again, a signal or a message of the
/// peer has to show that it has taken them. All threads of the group call it; it does not wait. It
/// orders nothing but the message.
template <device_group G, packed_element T>
__device__ void send_packets(const G& group, packet* to, const T* from, std::int64_t count,
                             std::uint64_t epoch) {
  detail::send_message<memory_order::relaxed>(group, to, from, count, epoch);
  group.sync();
}

}  // namespace untax
