#include "share_exchange.hpp"

#include <mutex>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "deadline.hpp"
#include "messages.hpp"

namespace untax {
namespace {

class exchange_of_threads final : public share_exchange {
 public:
  explicit exchange_of_threads(int ranks) : troubles_(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] bool between_processes() const noexcept override { return false; }
  void put(int rank, const share_offer& mine) override {
    const std::lock_guard lock(mutex_);
    troubles_[static_cast<std::size_t>(rank)] = mine.trouble;
  }
  [[nodiscard]] share_offers take(int /*rank*/, const control& /*state*/,
                                  std::chrono::milliseconds /*limit*/) override {
    const std::lock_guard lock(mutex_);
    for (const auto& trouble : troubles_) {
      if (trouble) return {trouble, {}};
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::vector<std::optional<error>> troubles_;  // by rank
};

/// Sent by every other rank to rank 0, with a descriptor unless there is trouble; and by rank 0 to
/// every other rank, with the descriptors of all ranks.
struct offer_message {
  std::int32_t trouble = -1;  ///< or an errc
  message_text<1020> text{};

  [[nodiscard]] static offer_message of(const std::optional<error>& trouble) {
    offer_message m;
    if (!trouble) return m;
    m.trouble = static_cast<std::int32_t>(trouble->code());
    m.text.set(trouble->what());
    return m;
  }
  [[nodiscard]] std::optional<error> found() const {
    if (trouble < 0) return std::nullopt;
    return error(static_cast<errc>(trouble), text.get());
  }
};

class exchange_of_processes final : public share_exchange {
 public:
  exchange_of_processes(int rank, int ranks, std::vector<unix_socket> links)
      : rank_(rank), ranks_(ranks), links_(std::move(links)) {}

  [[nodiscard]] bool between_processes() const noexcept override { return true; }
  void put(int /*rank*/, const share_offer& mine) override {
    own_ = offer_message::of(mine.trouble);
    own_share_ = mine.memory ? mine.memory->descriptor() : -1;
    if (rank_ > 0) send(links_.front(), 0, own_, std::span(&own_share_, own_share_ >= 0 ? 1 : 0));
  }
  [[nodiscard]] share_offers take(int /*rank*/, const control& state,
                                  std::chrono::milliseconds limit) override {
    return rank_ == 0 ? gather(state, limit) : receive(links_.front(), 0, state, limit);
  }

 private:
  void send(const unix_socket& link, int peer, const offer_message& m,
            std::span<const int> attachments) const {
    if (link.send(bytes_of(m), attachments)) return;
    throw error(errc::peer_lost,
                fmt::format("rank {}: rank {} ended while heaps grew", rank_, peer));
  }

  [[nodiscard]] share_offers receive(const unix_socket& link, int peer, const control& state,
                                     std::chrono::milliseconds limit) const {
    const deadline end(limit);
    while (!link.wait(10)) {
      if (state.stopped())
        throw error(errc::aborted, fmt::format("rank {}: the world was stopped", rank_));
      if (!end.passed()) continue;
      throw error(
          errc::timeout,
          fmt::format("rank {}: rank {} did not send its part of a larger heap within {} ms", rank_,
                      peer, limit.count()));
    }
    offer_message m;
    auto received = link.receive(writable_bytes_of(m));
    if (!received || received->bytes != sizeof m) {
      throw error(errc::peer_lost,
                  fmt::format("rank {}: rank {} ended while heaps grew", rank_, peer));
    }
    return {m.found(), std::move(received->attachments)};
  }

  /// Rank 0 tells all ranks of the first trouble, or sends the descriptors of all.
  [[nodiscard]] share_offers gather(const control& state, std::chrono::milliseconds limit) {
    share_offers offers{own_.found(), {}};
    offers.shares.emplace_back();  // its own, which needs no descriptor
    for (int peer = 1; peer < ranks_; ++peer) {
      share_offers offer = receive(link_to(peer), peer, state, limit);
      if (!offers.trouble) offers.trouble = std::move(offer.trouble);
      if (offer.shares.empty()) offer.shares.emplace_back();
      offers.shares.push_back(std::move(offer.shares.front()));
    }
    std::vector<int> numbers;
    if (!offers.trouble) {
      numbers.push_back(own_share_);
      for (int peer = 1; peer < ranks_; ++peer)
        numbers.push_back(offers.shares[static_cast<std::size_t>(peer)].get());
    }
    for (int peer = 1; peer < ranks_; ++peer)
      send(link_to(peer), peer, offer_message::of(offers.trouble), numbers);
    return offers;
  }
  [[nodiscard]] const unix_socket& link_to(int peer) const {
    return links_[static_cast<std::size_t>(peer - 1)];
  }

  int rank_;
  int ranks_;
  std::vector<unix_socket> links_;
  offer_message own_;
  int own_share_ = -1;
};

}  // namespace

std::shared_ptr<share_exchange> share_exchange::of_threads(int ranks) {
  return std::make_shared<exchange_of_threads>(ranks);
}
std::shared_ptr<share_exchange> share_exchange::of_processes(int rank, int ranks,
                                                             std::vector<unix_socket> links) {
  return std::make_shared<exchange_of_processes>(rank, ranks, std::move(links));
}

}  // namespace untax
