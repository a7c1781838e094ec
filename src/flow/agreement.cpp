#include <untax/flow/agreement.hpp>

#include <algorithm>
#include <vector>

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

// The text of a call as it is kept in the ledger. A long text is cut to its beginning and its end.
std::string kept_of(std::string_view call) {
  if (call.size() <= ledger_line::longest_call) return std::string(call);
  constexpr std::size_t around = 32;  // an upper bound on the bytes of the text in the middle
  constexpr std::size_t part = (ledger_line::longest_call - around) / 2;
  return fmt::format("{} [{} bytes] {}", call.substr(0, part), call.size() - 2 * part,
                     call.substr(call.size() - part));
}

std::string side(int rank, const std::optional<ledger_line>& line) {
  return fmt::format("\n  rank {}: {}", rank, line ? line->text : "(no longer kept)");
}

std::vector<std::string_view> items_of(std::string_view text) {
  constexpr std::string_view between = ", ";
  std::vector<std::string_view> items;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(between);
    items.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + between.size());
  }
  return items;
}

// Names the items that differ between two lists, such as plans. Empty if the calls differ
// altogether: in the number of items, in all items, or with fewer than three items.
std::string differing_items(int first, std::string_view first_text, int second,
                            std::string_view two) {
  const auto ours = items_of(first_text);
  const auto theirs = items_of(two);
  if (ours.size() != theirs.size() || ours.size() < 3) return "";
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    ++count;
    text += fmt::format("{} \"{}\" at rank {} and \"{}\" at rank {}", text.empty() ? "" : ",",
                        ours[i], first, theirs[i], second);
  }
  return count < ours.size() ? "\n  what differs:" + text : "";
}

}  // namespace

void agreement::post(std::string_view call) {
  chain_ = extend(chain_, call);
  world_.post(rank_, {++sequence_, chain_, extend(0, call), kept_of(call)});
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
  // An overwritten entry can be skipped: the chained hash of a later entry covers it.
  if (mine && theirs && mine->chain != theirs->chain) refuse(peer, common);
}

std::string agreement::sides(int peer, std::uint64_t sequence) const {
  const int first = std::min(rank_, peer);
  const int second = std::max(rank_, peer);
  const auto posted = world_.posted_at(first, sequence);
  const auto two = world_.posted_at(second, sequence);
  const bool hidden = posted && two && posted->call != two->call && posted->text == two->text;
  const std::string items =
      posted && two ? differing_items(first, posted->text, second, two->text) : std::string();
  return items + side(first, posted) + side(second, two) +
         (hidden ? "\n  (they differ in the bytes that are left out)" : "");
}

void agreement::refuse(int peer, std::uint64_t sequence) const {
  // Goes back to the first call that differs; the chained hashes differ from there on.
  std::uint64_t oldest = sequence;
  bool same_before = oldest == 1;
  while (!same_before) {
    const auto mine = world_.posted_at(rank_, oldest - 1);
    const auto theirs = world_.posted_at(peer, oldest - 1);
    if (!mine || !theirs) break;
    same_before = mine->chain == theirs->chain || oldest == 2;
    if (mine->chain != theirs->chain) --oldest;
  }
  const auto differs = [&](std::uint64_t call) {
    const auto mine = world_.posted_at(rank_, call);
    const auto theirs = world_.posted_at(peer, call);
    return mine && theirs && mine->call != theirs->call;
  };
  std::uint64_t shown = oldest;
  while (shown < sequence && !same_before && !differs(shown)) ++shown;
  std::string what = fmt::format("their collective call number {} differs:", shown);
  if (!same_before) {
    what =
        fmt::format("a call before number {} differed, and its text is no longer kept; ", oldest);
    what += differs(shown) ? fmt::format("number {} differs, too:", shown)
                           : fmt::format("number {} is the same again:", shown);
  }
  const std::string text = fmt::format(
      "ranks {} and {} make different calls; {}{}\n"
      "All ranks have to make the same allocations, operators and barriers in the same order.",
      std::min(rank_, peer), std::max(rank_, peer), what, sides(peer, shown));
  world_.stop({rank_, peer, errc::disagreement, text});
  throw error(errc::disagreement, fmt::format("rank {}: {}", rank_, text));
}

}  // namespace untax
