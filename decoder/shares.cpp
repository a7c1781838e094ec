#include <untax/decoder/shares.hpp>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/types.hpp>

namespace untax {
namespace {

/// Part `part` of `parts` of `count`, each but the last ending at a multiple of `unit`.
index_range part_of(std::int64_t count, std::int64_t part, std::int64_t parts,
                    std::int64_t unit = 1) {
  const std::int64_t units = ceil_div(count, unit);
  return {std::min(count, units * part / parts * unit),
          std::min(count, units * (part + 1) / parts * unit)};
}

void require(std::string_view what, const index_range& range, int rank, int ranks) {
  if (range.size() > 0) return;
  throw error(
      errc::invalid_argument,
      fmt::format("rank {} of {} ranks would have no {}; take fewer ranks", rank, ranks, what));
}

weight_shares split(const decoder_config& config, int rank, int ranks) {
  weight_shares shares;
  const std::int64_t group = config.heads / config.kv_heads;
  if (config.kv_heads >= ranks) {
    shares.kv_heads = part_of(config.kv_heads, rank, ranks);
    shares.heads = {shares.kv_heads.begin * group, shares.kv_heads.end * group};
  } else {
    // The ranks of a head of the keys are those whose number leads to it; they share its queries.
    const std::int64_t head = rank * config.kv_heads / ranks;
    const std::int64_t first = ceil_div(head * ranks, config.kv_heads);
    const std::int64_t sharers = ceil_div((head + 1) * ranks, config.kv_heads) - first;
    shares.kv_heads = {head, head + 1};
    const index_range within = part_of(group, rank - first, sharers);
    shares.heads = {head * group + within.begin, head * group + within.end};
  }
  shares.intermediate = part_of(config.intermediate, rank, ranks, 8);
  // Equal widths, so that the products of all ranks have the same shape; the last may have fewer.
  const std::int64_t tokens =
      ranks > 1 ? round_up(ceil_div(config.vocabulary, std::int64_t{ranks}), std::int64_t{8})
                : config.vocabulary;
  shares.vocabulary = {std::min(rank * tokens, config.vocabulary),
                       std::min((rank + 1) * tokens, config.vocabulary)};
  return shares;
}

}  // namespace

weight_shares shares_of(const decoder_config& config, int rank, int ranks) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    throw error(errc::invalid_argument, fmt::format("there is no rank {} of {}", rank, ranks));
  }
  // All ranks refuse the same.
  for (int r = 0; r < ranks; ++r) {
    const weight_shares shares = split(config, r, ranks);
    require("attention heads", shares.heads, r, ranks);
    require("columns of the MLP", shares.intermediate, r, ranks);
    require("tokens of the vocabulary", shares.vocabulary, r, ranks);
  }
  return split(config, rank, ranks);
}

}  // namespace untax
