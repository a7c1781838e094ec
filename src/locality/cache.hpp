#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <untax/locality/device.hpp>

namespace untax::locality {

[[nodiscard]] inline std::uint64_t scattered(std::int64_t piece) {
  std::uint64_t x = static_cast<std::uint64_t>(piece) + 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Marks the number of a piece that is a line, numbered by its address.
constexpr std::int64_t addressed_piece = std::int64_t{1} << 62;

/// The distribution of lines with addresses over the channels of a cache.
struct channel_layout {
  std::uint64_t channels = 1;
  std::uint64_t lines = 1;  ///< consecutive lines of a channel
};

/// A set-associative cache with LRU replacement. The set of a piece is a hash of its number, as
/// devices hash addresses to sets; the set of a line with an address is in the line's channel.
class cache {
 public:
  cache(double bytes, int ways, double unit, channel_layout layout = {})
      : ways_(ways), layout_(layout) {
    const auto entries = static_cast<std::uint64_t>(bytes / unit);
    sets_ = entries / static_cast<std::uint64_t>(ways);
    if (sets_ == 0) {
      sets_ = 1;
      ways_ = entries == 0 ? 1 : static_cast<int>(entries);
    }
    entries_.resize(sets_ * static_cast<std::uint64_t>(ways_));
  }

  /// Looks a piece up and makes it the most recently used one of its set. On a hit, returns the
  /// time in seconds at which it arrives. On a miss, inserts it with the arrival time `arrives` and
  /// returns a negative number.
  double use(std::int64_t piece, double arrives) {
    const std::uint64_t set = set_of(piece);
    entry* first = &entries_[set * static_cast<std::uint64_t>(ways_)];
    entry moved{piece, arrives};
    for (int i = 0; i < ways_; ++i) {
      const entry line = first[i];
      first[i] = moved;
      if (line.piece == piece) {
        first[0].arrives = line.arrives;
        return line.arrives;
      }
      moved = line;
    }
    return -1;
  }
  /// Sets the arrival time of the piece that `use` has just inserted.
  void set_arrival(std::int64_t piece, double arrives) {
    const std::uint64_t set = set_of(piece);
    entries_[set * static_cast<std::uint64_t>(ways_)].arrives = arrives;
  }

 private:
  [[nodiscard]] std::uint64_t set_of(std::int64_t piece) const {
    const std::uint64_t hash = scattered(piece) >> 32;
    if (layout_.channels == 1 || (piece & addressed_piece) == 0) return (hash * sets_) >> 32;
    const std::uint64_t each = sets_ / layout_.channels;
    const auto line = static_cast<std::uint64_t>(piece ^ addressed_piece);
    return line / layout_.lines % layout_.channels * each + ((hash * each) >> 32);
  }
  struct entry {
    std::int64_t piece = -1;
    double arrives = 0;
  };

  int ways_;
  channel_layout layout_;
  std::uint64_t sets_ = 1;
  std::vector<entry> entries_;
};

/// The cache of a domain: one cache, or one per side. Each piece has a home side. A side that
/// misses on a read asks the piece's home side, and both keep the piece. A write goes to the home
/// side only.
class sided_cache {
 public:
  /// Assigns processors to sides pseudo-randomly, equally many to each.
  sided_cache(const device& d, double unit) : side_of_(static_cast<std::size_t>(d.processors)) {
    const level& level_of_device = d.cache;
    channel_layout layout;
    if (level_of_device.channels > 1 && level_of_device.channel_bytes >= d.line) {
      layout = {static_cast<std::uint64_t>(level_of_device.channels),
                static_cast<std::uint64_t>(level_of_device.channel_bytes / d.line)};
    }
    for (int i = 0; i < level_of_device.sides; ++i)
      sides_.emplace_back(level_of_device.bytes / level_of_device.sides, level_of_device.ways, unit,
                          layout);
    std::vector<std::pair<std::uint64_t, int>> assigned;
    for (int i = 0; i < d.processors; ++i) assigned.emplace_back(scattered(i), i);
    std::sort(assigned.begin(), assigned.end());
    for (std::size_t i = 0; i < assigned.size(); ++i)
      side_of_[static_cast<std::size_t>(assigned[i].second)] = static_cast<int>(i % sides_.size());
  }

  /// The side of the processor that has slot `place` of the domain.
  [[nodiscard]] int side_of(std::size_t place) const { return side_of_[place % side_of_.size()]; }

  struct answer {
    bool is_near;    ///< whether the requesting side has the piece; of a write: whether it is the
                     ///< home side
    double arrives;  ///< arrival time in seconds; negative if no side has it
  };
  /// As `cache::use`, for a processor of `side`.
  answer use(int side, std::int64_t piece, bool is_write, double now) {
    const int home = home_of(piece);
    if (is_write) return {home == side, of(home).use(piece, now)};
    const double near = of(side).use(piece, now);
    if (near >= 0) return {true, near};
    return {false, home == side ? -1 : of(home).use(piece, now)};
  }
  /// Sets the arrival time of a piece that no side had.
  void set_arrival(int side, std::int64_t piece, bool is_write, double arrives) {
    const int home = home_of(piece);
    of(home).set_arrival(piece, arrives);
    if (home != side && !is_write) of(side).set_arrival(piece, arrives);
  }
  /// Sets the arrival time at `side` of a piece that only its home side had.
  void set_near_arrival(int side, std::int64_t piece, double arrives) {
    of(side).set_arrival(piece, arrives);
  }

 private:
  [[nodiscard]] cache& of(int side) { return sides_[static_cast<std::size_t>(side)]; }
  /// The home side of a piece, from bits of the hash that do not choose the set.
  [[nodiscard]] int home_of(std::int64_t piece) const {
    return static_cast<int>((scattered(piece) & 0xffff) % sides_.size());
  }

  std::vector<cache> sides_;
  std::vector<int> side_of_;
};

}  // namespace untax::locality
