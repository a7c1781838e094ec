#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <untax/flow/control_block.hpp>
#include <untax/world/world.hpp>

#include "launch_place.hpp"
#include "member.hpp"

namespace untax {
namespace {

/// The data that processes exchange before they meet. Texts that are too long are cut.
struct introduction_card {
  std::array<char, 64> host{};        // host name, for errors
  std::array<char, 64> boot{};        // identifies the host, also if host names are equal
  std::array<char, 128> directory{};  // of rank 0: where to meet
  std::array<char, 256> trouble{};    // why this rank cannot take part; empty if it can
};

template <std::size_t Size>
void put_text(std::array<char, Size>& to, std::string_view text) {
  to.fill('\0');
  text.copy(to.data(), Size - 1);
}

std::string boot_of_host() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return text;
}

std::vector<introduction_card> exchanged(const introduction_card& mine, int ranks,
                                         const byte_exchange& exchange) {
  std::vector<introduction_card> all(static_cast<std::size_t>(ranks));
  exchange(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (introduction_card& card : all) {
    card.host.back() = card.boot.back() = card.directory.back() = card.trouble.back() = '\0';
  }
  return all;
}

// Every rank has the same cards, so all ranks throw the same error.
void require_willing(const std::vector<introduction_card>& cards) {
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].trouble[0] == '\0') continue;
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}", rank, cards[rank].trouble.data()));
  }
}

void require_one_host(const std::vector<introduction_card>& cards) {
  for (std::size_t rank = 1; rank < cards.size(); ++rank) {
    if (cards[rank].boot == cards[0].boot) continue;
    throw error(errc::unsupported,
                fmt::format("rank 0 is on host {} and rank {} on host {}; untax needs all ranks of "
                            "a world on one host",
                            cards[0].host.data(), rank, cards[rank].host.data()));
  }
}

}  // namespace

world world::from_exchange(int rank, int ranks, const byte_exchange& exchange,
                           const world_options& options) {
  if (ranks < 1 || ranks > max_ranks || rank < 0 || rank >= ranks) {
    throw error(errc::invalid_argument,
                fmt::format("rank {} of a world of {} ranks; a world can have 1 to {}, and its "
                            "ranks count from 0",
                            rank, ranks, max_ranks));
  }
  const environment env;
  settings s;
  introduction_card mine;
  try {
    // A rank that shares a GPU in another world also shares it in this one.
    const bool shares = ranks == 1 && options.ranks_per_gpu.value_or(1) > 1;
    s = shares ? settings::of_gpus(options, env) : settings::of(options, env);
  } catch (const error& e) {
    put_text(mine.trouble, e.what());
  }
  gethostname(mine.host.data(), mine.host.size() - 1);
  put_text(mine.boot, boot_of_host());
  // The place outlives the meeting, and removes the files of a meeting that fails.
  const auto place = rank == 0 ? std::make_unique<launch_place>("") : nullptr;
  if (place) put_text(mine.directory, place->directory());

  const auto cards = ranks > 1 ? exchanged(mine, ranks, exchange) : std::vector{mine};
  require_willing(cards);
  require_one_host(cards);
  placement p;
  p.rank = rank;
  p.world_size = ranks;
  p.rendezvous = cards[0].directory.data();
  p.job = p.launch = fmt::format("the exchange of {}", p.rendezvous);
  p.once = true;
  return member::meet_processes(p, s, env);
}

}  // namespace untax
