#pragma once

#include <cstdint>
#include <vector>

namespace untax::locality {

/// A cache of sets that hold the pieces that were used last. The set of a piece is a hash of its
/// number, as devices spread addresses over theirs.
class cache {
 public:
  cache(double bytes, int ways, double unit) : ways_(ways) {
    const auto entries = static_cast<std::uint64_t>(bytes / unit);
    sets_ = entries / static_cast<std::uint64_t>(ways);
    if (sets_ == 0) {
      sets_ = 1;
      ways_ = entries == 0 ? 1 : static_cast<int>(entries);
    }
    entries_.resize(sets_ * static_cast<std::uint64_t>(ways_));
  }

  /// Looks a piece up and makes it the last used one of its set. Returns when it is there, in
  /// seconds, or a negative number if it was not; then it has been put there, and `arrives` is what
  /// later calls return.
  double use(std::int64_t piece, double arrives) {
    const std::uint64_t set = set_of(piece);
    entry* first = &entries_[set * static_cast<std::uint64_t>(ways_)];
    entry moved{piece, arrives};
    for (int i = 0; i < ways_; ++i) {
      const entry here = first[i];
      first[i] = moved;
      if (here.piece == piece) {
        first[0].arrives = here.arrives;
        return here.arrives;
      }
      moved = here;
    }
    return -1;
  }
  /// When the piece that `use` has just put in will be there.
  void set_arrival(std::int64_t piece, double arrives) {
    const std::uint64_t set = set_of(piece);
    entries_[set * static_cast<std::uint64_t>(ways_)].arrives = arrives;
  }

 private:
  [[nodiscard]] std::uint64_t set_of(std::int64_t piece) const {
    return ((scattered(piece) >> 32) * sets_) >> 32;
  }
  struct entry {
    std::int64_t piece = -1;
    double arrives = 0;
  };
  static std::uint64_t scattered(std::int64_t piece) {
    std::uint64_t x = static_cast<std::uint64_t>(piece) + 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  int ways_;
  std::uint64_t sets_ = 1;
  std::vector<entry> entries_;
};

}  // namespace untax::locality
