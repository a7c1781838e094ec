#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <untax/rma/check.hpp>
#include <untax/rma/order.hpp>

// Operations of one thread on one value at any rank. None of them waits for another thread. Every
// address must be a multiple of the size of the value; null and misaligned addresses are refused
// with errc::invalid_argument. So are values outside of an allocation if heaps have guards. An
// operation takes from `order` the part that applies to it: a load acquires, a store releases. The
// scope has no effect on the host.

namespace untax {

/// Numbers that can be changed atomically: integers of 4 or 8 bytes, float and double.
template <class T>
concept atomic_number = !std::is_const_v<T> && !std::same_as<T, bool> && std::is_arithmetic_v<T> &&
                        (sizeof(T) == 4 || sizeof(T) == 8);

/// Integers that can be changed atomically.
template <class T>
concept atomic_integer = atomic_number<T> && std::integral<T>;

/// Values that can be read and written in one access: 1, 2, 4 or 8 bytes, aligned to their size.
template <class T>
concept atomic_word =
    std::is_trivially_copyable_v<T> && !std::is_const_v<T> && alignof(T) == sizeof(T) &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

namespace detail {

template <class T>
[[nodiscard]] std::atomic_ref<T> atomic_at(std::string_view verb, T* at) {
  check_address(verb, "location", at, std::atomic_ref<T>::required_alignment);
  check_inside(verb, "location", at, sizeof(T));
  return std::atomic_ref<T>(*at);
}

/// Replaces the value by `change(value)` and returns the value before. The loop retries only if
/// another thread was faster; it waits for no thread. It always writes, so that it releases
/// whatever the outcome.
template <class T, class Change>
T atomic_update(std::atomic_ref<T> location, memory_order order, Change change) {
  T seen = location.load(std::memory_order_relaxed);
  while (!location.compare_exchange_weak(seen, change(seen), exchange_order(order),
                                         load_order(order))) {
  }
  return seen;
}

}  // namespace detail

/// Reads a value. `acquire`: data that its writer released are visible afterwards.
template <atomic_word T>
[[nodiscard]] T load(const T* from, memory_order order = memory_order::relaxed,
                     memory_scope /*scope*/ = memory_scope::system) {
  // std::atomic_ref takes no const object before C++26; the location is only read.
  return detail::atomic_at("load",
                           const_cast<T*>(from))  // NOLINT(cppcoreguidelines-pro-type-const-cast)
      .load(detail::load_order(order));
}

/// Writes a value. `release`: earlier writes of this thread are visible to a thread that acquires.
template <atomic_word T>
void store(T* to, std::type_identity_t<T> value, memory_order order = memory_order::relaxed,
           memory_scope /*scope*/ = memory_scope::system) {
  detail::atomic_at("store", to).store(value, detail::store_order(order));
}

/// Adds `value` and returns the value before. Integers wrap around. Sums of floating-point numbers
/// depend on the order of arrival.
template <atomic_number T>
T atomic_add(T* at, std::type_identity_t<T> value, memory_order order = memory_order::acq_rel,
             memory_scope /*scope*/ = memory_scope::system) {
  return detail::atomic_at("atomic_add", at).fetch_add(value, detail::exchange_order(order));
}

/// Subtracts `value` and returns the value before, as atomic_add.
template <atomic_number T>
T atomic_sub(T* at, std::type_identity_t<T> value, memory_order order = memory_order::acq_rel,
             memory_scope /*scope*/ = memory_scope::system) {
  return detail::atomic_at("atomic_sub", at).fetch_sub(value, detail::exchange_order(order));
}

/// Bitwise and; returns the value before.
template <atomic_integer T>
T atomic_and(T* at, std::type_identity_t<T> value, memory_order order = memory_order::acq_rel,
             memory_scope /*scope*/ = memory_scope::system) {
  return detail::atomic_at("atomic_and", at).fetch_and(value, detail::exchange_order(order));
}

/// Bitwise or; returns the value before.
template <atomic_integer T>
T atomic_or(T* at, std::type_identity_t<T> value, memory_order order = memory_order::acq_rel,
            memory_scope /*scope*/ = memory_scope::system) {
  return detail::atomic_at("atomic_or", at).fetch_or(value, detail::exchange_order(order));
}

/// Bitwise exclusive or; returns the value before.
template <atomic_integer T>
T atomic_xor(T* at, std::type_identity_t<T> value, memory_order order = memory_order::acq_rel,
             memory_scope /*scope*/ = memory_scope::system) {
  return detail::atomic_at("atomic_xor", at).fetch_xor(value, detail::exchange_order(order));
}

/// Keeps the smaller value and returns the value before. NaN never replaces a number, and a number
/// never replaces NaN.
template <atomic_number T>
T atomic_min(T* at, std::type_identity_t<T> value, memory_order order = memory_order::acq_rel,
             memory_scope /*scope*/ = memory_scope::system) {
  return detail::atomic_update(detail::atomic_at("atomic_min", at), order,
                               [value](T seen) { return value < seen ? value : seen; });
}

/// Keeps the larger value and returns the value before; NaN as in atomic_min.
template <atomic_number T>
T atomic_max(T* at, std::type_identity_t<T> value, memory_order order = memory_order::acq_rel,
             memory_scope /*scope*/ = memory_scope::system) {
  return detail::atomic_update(detail::atomic_at("atomic_max", at), order,
                               [value](T seen) { return value > seen ? value : seen; });
}

/// Writes `value` and returns the value before.
template <atomic_number T>
T atomic_exchange(T* at, std::type_identity_t<T> value, memory_order order = memory_order::acq_rel,
                  memory_scope /*scope*/ = memory_scope::system) {
  return detail::atomic_at("atomic_exchange", at).exchange(value, detail::exchange_order(order));
}

/// Writes `desired` if the value equals `expected` bit for bit. It returns the value before, which
/// tells the caller whether `desired` was written. If not, the operation is a load and only
/// acquires.
template <atomic_number T>
T atomic_compare_exchange(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
                          memory_order order = memory_order::acq_rel,
                          memory_scope /*scope*/ = memory_scope::system) {
  detail::atomic_at("atomic_compare_exchange", at)
      .compare_exchange_strong(expected, desired, detail::exchange_order(order),
                               detail::load_order(order));
  return expected;
}

}  // namespace untax
