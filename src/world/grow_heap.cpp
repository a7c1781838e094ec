#include <fmt/format.h>

#include "member.hpp"

namespace untax {
namespace {

share_offer offer_of(int rank, int device, std::size_t bytes, bool shared) {
  share_offer mine;
  try {
    mine.memory = device_share::make(rank, device, bytes, shared);
  } catch (const error& e) {
    mine.trouble.emplace(e.code(), e.what());
  }
  return mine;
}

}  // namespace

// Every rank allocates its memory before any maps some, so that all of them grow, or none does.
void world::grow_heap(std::size_t bytes, std::string_view label) {
  member& mine = own();
  symmetric_heap& heap = mine.heap;
  device_arenas* const arenas = mine.memory->devices();
  const std::size_t offset = heap.capacity() + segment_layout::stop_bytes;
  const std::string call = fmt::format("growing the heap by {} bytes for \"{}\"", bytes, label);
  meet(verb::barrier, "allocate", call);
  const share_offer offer = offer_of(rank(), device(), bytes, mine.offers->between_processes());
  try {
    mine.offers->put(rank(), offer);
    meet(verb::barrier, "allocate", call + ", for which every rank has offered memory");
    const share_offers offers = mine.offers->take(rank(), mine.state, mine.wait_limit);
    if (!offers.trouble) {
      arenas->extend(rank(), offset, bytes, *offer.memory);
      for (std::size_t peer = 0; peer < offers.shares.size(); ++peer) {
        if (static_cast<int>(peer) != rank())
          arenas->extend(static_cast<int>(peer), offset, bytes, offers.shares[peer].get());
      }
    }
    meet(verb::barrier, "allocate", call + ", which every rank has mapped or refused");
    if (offers.trouble) {
      throw error(offers.trouble->code(),
                  fmt::format("{}; the heaps were to grow by {} for \"{}\"\n{}",
                              offers.trouble->what(), format_bytes(bytes), label, heap.report()));
    }
  } catch (const error& e) {
    // All ranks were told out_of_memory; any other error would differ between ranks.
    if (e.code() != errc::out_of_memory) fail(e.code(), e.what());
    throw;
  }
  heap.extend(bytes);
}

}  // namespace untax
