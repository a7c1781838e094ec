#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/step.hpp>

namespace untax {

/// The exchange of a sum over ranks, as one rank takes part in it. Each rank stores its partial
/// results of some rows in a slab at the rank that owns these rows. The owner adds the slabs of all
/// ranks in rank order, in whatever order they arrive, and may store the sums at all ranks. Or
/// every rank owns all rows.
///
/// A slab consists of parts. The source reserves a part before it fills it, and publishes it; the
/// owner acquires a part before it adds it, and retires the slab. An owner that stores sums at
/// peers publishes that they have landed, and every rank acquires that of all owners. A rank waits
/// for peers only after it has sent all data that they wait for, so no cycle of waits can arise.
///
/// A placement derives from this class, and defines the parts and the places of the counters. There
/// are three placements (ops/gemm_reduce_scatter/README.md): a part is a tile, all that a rank
/// sends, or a word, which is its own signal.
///
///   rank(), world(), sets()
///   has_rooms()                  false if barriers take the place of all counters
///   ready_of(set, source, part)  at the owner
///   free_of(set, owner)          at the source: the first of `takers()`, which an owner raises; -1
///                                if other signals of the exchange say that a slab is free
///   credit()                     1: owners retire slabs after a run; 0: they open them for a run
///   landed_of(owner, passer)     at every rank
template <class Placement>
class owner_exchange {
 public:
  // The rooms.

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room slab(int source, int owner, std::uint64_t epoch,
                                                      int part = 0) const noexcept {
    room r;
    if (!self().has_rooms()) return r;
    const int set = self().sets().set_of(epoch);
    r.producer = source;
    r.consumer = owner;
    r.number = r.ready = self().ready_of(set, source, part);
    r.free = self().free_of(set, owner);
    r.readers = self().takers();
    r.use = self().sets().use_of(epoch);
    r.credit = self().credit();
    return r;
  }
  /// Signals that all sums of `owner`, or those of one of its workers, have been stored at rank
  /// `to`.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room landed(int owner, int to, std::uint64_t epoch,
                                                        int passer = 0) const noexcept {
    room r;
    r.producer = owner;
    r.consumer = to;
    r.number = r.ready = self().landed_of(owner, passer);
    r.use = epoch;
    return r;
  }

  // The steps between ranks.

  /// Calls `visit` for all other ranks, the next one first.
  template <class Visit>
  constexpr void each_peer(Visit&& visit) const {
    for (int hop = 1; hop < world(); ++hop) visit(receiver_at_hop(rank(), hop, world()));
  }
  /// The owner retires, or opens, the slabs of all sources.
  template <class Emit>
  constexpr void retire_slabs(std::uint64_t epoch, int taker, Emit&& emit) const {
    for (int hop = 1; hop < world(); ++hop)
      emit(step{.retire = slab(source_at_hop(rank(), hop, world()), rank(), epoch),
                .reader = taker});
  }
  /// sum = partial of rank 0 + partial of rank 1 + ... `from(source)` is the place of a partial,
  /// `arrival(source)` the room to acquire before.
  template <class From, class Arrival, class Emit>
  constexpr void add(std::int64_t rows, std::int64_t cols, const From& from, const Arrival& arrival,
                     Emit&& emit) const {
    for (int source = 0; source < world(); ++source)
      emit(step{.what = action::add,
                .first = source == 0,
                .rows = rows,
                .cols = cols,
                .from = from(source),
                .acquire = arrival(source)});
  }
  /// Publishes that this rank has sent a part of all slabs, and waits for that part of all sources.
  template <class Emit>
  constexpr void close_slabs(std::uint64_t epoch, int part, Emit&& emit) const {
    meet([&](int from, int to) { return slab(from, to, epoch, part); }, [](int) { return true; },
         emit);
  }
  /// Publishes that this rank has stored its sums at all ranks, and waits for the sums of the
  /// others. `passes(owner)`: whether that owner has some.
  template <class Passes, class Emit>
  constexpr void close_sums(std::uint64_t epoch, int passer, const Passes& passes,
                            Emit&& emit) const {
    meet([&](int from, int to) { return landed(from, to, epoch, passer); }, passes, emit);
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr const Placement& self() const noexcept {
    return static_cast<const Placement&>(*this);
  }
  [[nodiscard]] constexpr int rank() const noexcept { return self().rank(); }
  [[nodiscard]] constexpr int world() const noexcept { return self().world(); }

  template <class RoomOf, class Sends, class Emit>
  constexpr void meet(const RoomOf& room_of, const Sends& sends, Emit&& emit) const {
    if (sends(rank())) each_peer([&](int peer) { emit(step{.publish = room_of(rank(), peer)}); });
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      if (sends(source)) emit(step{.acquire = room_of(source, rank())});
    }
  }
};

}  // namespace untax
