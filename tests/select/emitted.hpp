// A selector, made by `untax select emit` for sample. Do not edit.
// clang-format off
#pragma once

#include <algorithm>
#include <cmath>

namespace emitted_sample {

enum class candidate : int { plain, wide, padded };
inline constexpr const char* candidate_names[] = {"plain", "wide", "padded"};

// The known features of an input.
struct known_features {
  double n;
};

// The features that take a pass over the input.
struct gathered_features {
  double longest;
};

// A tree as a table: feature -1 is a leaf; at most `threshold` goes to `low`. Features are numbered in the
// order of the structs and of what is computed behind them; the last is the number of iterations.
struct node {
  int feature;
  double threshold;
  int low, high, choice;
};
inline constexpr node gather_tree[] = {
    {2, 10.0, 1, 2, 0},
    {-1, 0.0, -1, -1, 0},
    {0, 200.5, 3, 4, 0},
    {-1, 0.0, -1, -1, 0},
    {-1, 0.0, -1, -1, 1},
};

inline constexpr node known_tree[] = {
    {0, 100.25, 1, 2, 0},
    {-1, 0.0, -1, -1, 2},
    {0, 1000.0, 3, 4, 0},
    {-1, 0.0, -1, -1, 0},
    {-1, 0.0, -1, -1, 1},
};

inline constexpr node gathered_tree[] = {
    {0, 260.0, 1, 4, 2},
    {2, 6.5, 2, 3, 0},
    {-1, 0.0, -1, -1, 2},
    {-1, 0.0, -1, -1, 0},
    {2, 6.5, 5, 6, 2},
    {-1, 0.0, -1, -1, 2},
    {0, 499.0, 7, 8, 1},
    {-1, 0.0, -1, -1, 0},
    {-1, 0.0, -1, -1, 1},
};

// Does gathering pay?
inline bool gathering_pays(const known_features& known, [[maybe_unused]] double iterations) {
  [[maybe_unused]] const double n = known.n;
  [[maybe_unused]] const double half = (n / 2.0);
  if (iterations <= 10.0) {
    return false;
  }
  if (n <= 200.5) {
    return false;
  }
  return true;
}

// Which candidate, by what is known? Without guards.
inline candidate by_known_tree(const known_features& known, [[maybe_unused]] double iterations) {
  [[maybe_unused]] const double n = known.n;
  [[maybe_unused]] const double half = (n / 2.0);
  if (n <= 100.25) {
    return candidate::padded;
  }
  if (n <= 1000.0) {
    return candidate::plain;
  }
  return candidate::wide;
}

// Which candidate, by what is known?
inline candidate choose(const known_features& known, [[maybe_unused]] double iterations) {
  [[maybe_unused]] const double n = known.n;
  [[maybe_unused]] const double half = (n / 2.0);
  const candidate chosen = by_known_tree(known, iterations);
  if (chosen == candidate::plain && !(half <= 300.0)) return candidate::wide;
  if (chosen == candidate::padded && !(n <= (64.0 + (half / 3.0)))) return candidate::wide;
  return chosen;
}

// Which candidate, by what was gathered? Without guards.
inline candidate by_gathered_tree(const known_features& known, const gathered_features& gathered, [[maybe_unused]] double iterations) {
  [[maybe_unused]] const double n = known.n;
  [[maybe_unused]] const double half = (n / 2.0);
  [[maybe_unused]] const double longest = gathered.longest;
  if (n <= 260.0) {
    if (longest <= 6.5) {
      return candidate::padded;
    }
    return candidate::plain;
  }
  if (longest <= 6.5) {
    return candidate::padded;
  }
  if (n <= 499.0) {
    return candidate::plain;
  }
  return candidate::wide;
}

// Which candidate, by what was gathered?
inline candidate choose(const known_features& known, const gathered_features& gathered, [[maybe_unused]] double iterations) {
  [[maybe_unused]] const double n = known.n;
  [[maybe_unused]] const double half = (n / 2.0);
  [[maybe_unused]] const double longest = gathered.longest;
  const candidate chosen = by_gathered_tree(known, gathered, iterations);
  if (chosen == candidate::plain && !(half <= 300.0)) return candidate::wide;
  if (chosen == candidate::padded && !(longest <= 8.0)) return candidate::wide;
  return chosen;
}

}  // namespace emitted_sample
