#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <cuda/atomic>

#include <untax/rma/atomic.hpp>
#include <untax/rma/device_group.cuh>
#include <untax/rma/order.hpp>

// The operations of rma/atomic.hpp for one thread of a kernel, which is their first argument.
// Orders and results are those of the host. Addresses have to be multiples of the size of the
// value, which is not checked. `memory_scope::system`, the default, is the only scope that reaches
// other ranks.

namespace untax {

/// One thread of a kernel, with or without a guard.
template <class G>
concept lone_device_group = device_group<G> && std::derived_from<G, device_thread>;

namespace detail {

[[nodiscard]] __device__ constexpr cuda::std::memory_order cuda_order(memory_order order) noexcept {
  switch (order) {
    case memory_order::relaxed:
      return cuda::std::memory_order_relaxed;
    case memory_order::acquire:
      return cuda::std::memory_order_acquire;
    case memory_order::release:
      return cuda::std::memory_order_release;
    case memory_order::acq_rel:
      break;
  }
  return cuda::std::memory_order_acq_rel;
}

/// The part of `order` that applies to a load, or to a store.
[[nodiscard]] __device__ constexpr cuda::std::memory_order cuda_load_order(
    memory_order order) noexcept {
  const bool acquires = order == memory_order::acquire || order == memory_order::acq_rel;
  return acquires ? cuda::std::memory_order_acquire : cuda::std::memory_order_relaxed;
}
[[nodiscard]] __device__ constexpr cuda::std::memory_order cuda_store_order(
    memory_order order) noexcept {
  const bool releases = order == memory_order::release || order == memory_order::acq_rel;
  return releases ? cuda::std::memory_order_release : cuda::std::memory_order_relaxed;
}

/// Calls `body` with an atomic reference to `*at` of the scope.
template <class T, class Body>
__device__ auto at_scope(T* at, memory_scope scope, const Body& body) {
  switch (scope) {
    case memory_scope::block:
      return body(cuda::atomic_ref<T, cuda::thread_scope_block>(*at));
    case memory_scope::device:
      return body(cuda::atomic_ref<T, cuda::thread_scope_device>(*at));
    case memory_scope::system:
      break;
  }
  return body(cuda::atomic_ref<T, cuda::thread_scope_system>(*at));
}

/// As `detail::atomic_update` of rma/atomic.hpp.
template <class T, class Change>
__device__ T device_update(T* at, memory_order order, memory_scope scope, const Change& change) {
  return at_scope(at, scope, [&](auto ref) {
    T seen = ref.load(cuda::std::memory_order_relaxed);
    while (
        !ref.compare_exchange_weak(seen, change(seen), cuda_order(order), cuda_load_order(order))) {
    }
    return seen;
  });
}

}  // namespace detail

/// Reads a value at any rank.
template <lone_device_group G, atomic_word T>
[[nodiscard]] __device__ T load(const G& /*thread*/, const T* from,
                                memory_order order = memory_order::relaxed,
                                memory_scope scope = memory_scope::system) {
  return detail::at_scope(const_cast<T*>(from), scope,
                          [&](auto ref) -> T { return ref.load(detail::cuda_load_order(order)); });
}

/// Writes a value at any rank.
template <lone_device_group G, atomic_word T>
__device__ void store(const G& /*thread*/, T* to, std::type_identity_t<T> value,
                      memory_order order = memory_order::relaxed,
                      memory_scope scope = memory_scope::system) {
  detail::at_scope(to, scope, [&](auto ref) { ref.store(value, detail::cuda_store_order(order)); });
}

/// atomic_add, atomic_sub, atomic_and, atomic_or, atomic_xor and atomic_exchange. Each returns the
/// value before.
#define UNTAX_DEVICE_ATOMIC(name, concept_name, operation)                     \
  template <lone_device_group G, concept_name T>                               \
  __device__ T name(const G& /*thread*/, T* at, std::type_identity_t<T> value, \
                    memory_order order = memory_order::acq_rel,                \
                    memory_scope scope = memory_scope::system) {               \
    return detail::at_scope(at, scope, [&](auto ref) -> T {                    \
      return ref.operation(value, detail::cuda_order(order));                  \
    });                                                                        \
  }
UNTAX_DEVICE_ATOMIC(atomic_add, atomic_number, fetch_add)
UNTAX_DEVICE_ATOMIC(atomic_sub, atomic_number, fetch_sub)
UNTAX_DEVICE_ATOMIC(atomic_and, atomic_integer, fetch_and)
UNTAX_DEVICE_ATOMIC(atomic_or, atomic_integer, fetch_or)
UNTAX_DEVICE_ATOMIC(atomic_xor, atomic_integer, fetch_xor)
UNTAX_DEVICE_ATOMIC(atomic_exchange, atomic_number, exchange)
#undef UNTAX_DEVICE_ATOMIC

/// Keeps the smaller value and returns the value before; NaN as on the host.
template <lone_device_group G, atomic_number T>
__device__ T atomic_min(const G& /*thread*/, T* at, std::type_identity_t<T> value,
                        memory_order order = memory_order::acq_rel,
                        memory_scope scope = memory_scope::system) {
  return detail::device_update(at, order, scope,
                               [value](T seen) { return value < seen ? value : seen; });
}

/// Keeps the larger value and returns the value before; NaN as on the host.
template <lone_device_group G, atomic_number T>
__device__ T atomic_max(const G& /*thread*/, T* at, std::type_identity_t<T> value,
                        memory_order order = memory_order::acq_rel,
                        memory_scope scope = memory_scope::system) {
  return detail::device_update(at, order, scope,
                               [value](T seen) { return value > seen ? value : seen; });
}

/// Writes `desired` if the value equals `expected` bit for bit, and returns the value before.
template <lone_device_group G, atomic_number T>
__device__ T atomic_compare_exchange(const G& /*thread*/, T* at, std::type_identity_t<T> expected,
                                     std::type_identity_t<T> desired,
                                     memory_order order = memory_order::acq_rel,
                                     memory_scope scope = memory_scope::system) {
  return detail::at_scope(at, scope, [&](auto ref) -> T {
    ref.compare_exchange_strong(expected, desired, detail::cuda_order(order),
                                detail::cuda_load_order(order));
    return expected;
  });
}

}  // namespace untax
