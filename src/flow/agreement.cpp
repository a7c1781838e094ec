#include <untax/flow/agreement.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace untax {
namespace {

// FNV-1a, continued from `hash`.
std::uint64_t extend(std::uint64_t hash, std::string_view text) noexcept {
  hash ^= 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

std::string side(int rank, const std::optional<ledger_line>& line) {
  return fmt::format("\n  rank {}: {}", rank, line ? line->text : "(too long ago to say)");
}

}  // namespace

void agreement::post(std::string_view call) {
  chain_ = extend(chain_, call);
  world_.post(rank_, {++sequence_, chain_, std::string(call)});
  compare();
}

void agreement::compare() const {
  for (int hop = 1; hop < world_.ranks(); ++hop) compare_with((rank_ + hop) % world_.ranks());
}

void agreement::compare_with(int peer) const {
  const std::uint64_t common = std::min(sequence_, world_.posted(peer));
  if (common == 0) return;
  const auto mine = world_.posted_at(rank_, common);
  const auto theirs = world_.posted_at(peer, common);
  // An entry that was overwritten is no loss: the hash of a later one covers it.
  if (mine && theirs && mine->chain != theirs->chain) refuse(peer, common);
}

void agreement::refuse(int peer, std::uint64_t sequence) const {
  // The first difference is what a person wants to see; the hash differs from there on.
  for (std::uint64_t earlier = sequence - 1; earlier > 0; --earlier) {
    const auto mine = world_.posted_at(rank_, earlier);
    const auto theirs = world_.posted_at(peer, earlier);
    if (!mine || !theirs || mine->chain == theirs->chain) break;
    sequence = earlier;
  }
  const int first = std::min(rank_, peer);
  const int second = std::max(rank_, peer);
  const std::string text = fmt::format(
      "ranks {} and {} do not do the same thing; their collective call number {} differs:{}{}\n"
      "All ranks have to make the same allocations, operators and barriers in the same order.",
      first, second, sequence, side(first, world_.posted_at(first, sequence)),
      side(second, world_.posted_at(second, sequence)));
  world_.stop({rank_, peer, errc::disagreement, text});
  throw error(errc::disagreement, fmt::format("rank {}: {}", rank_, text));
}

}  // namespace untax
