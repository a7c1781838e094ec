#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/select/schema.hpp>

namespace untax::select::test {

/// The text of the `invalid_argument` that `action` throws; "" if it throws none.
template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const error& e) {
    return e.code() == errc::invalid_argument ? e.what() : "another code: " + std::string(e.what());
  }
  return {};
}

/// Two candidates that are quick and one that fails for tall inputs; looking costs a little.
inline schema sample_schema() {
  schema s;
  s.title = "sample";
  s.features = {
      {"n", "n", false, true}, {"half", "n / 2", false, false}, {"longest", "longest", true, true}};
  s.candidates = {{"plain", "t_plain", "0", "", ""},
                  {"wide", "t_wide", "0", "", ""},
                  {"padded", "t_padded", "n * 1e-9", "longest <= 8", ""}};
  s.gathering = "1e-6 + n * 1e-10";
  s.iterations = {1, 1000};
  return s;
}

/// A table of it: plain is best for small n, wide for large n, padded where rows are short, and it
/// fails where they are very long.
inline std::string sample_csv(std::uint64_t seed, int records) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> logarithm(3, 16);
  std::uniform_int_distribution<int> length(1, 40);
  std::string text = "name,n,longest,t_plain,t_wide,t_padded\n";
  for (int i = 0; i < records; ++i) {
    const double n = std::floor(std::exp2(logarithm(random)));
    const int longest = length(random);
    text += "m" + std::to_string(i) + "," + std::to_string(n) + "," + std::to_string(longest) +
            "," + std::to_string(1 + n * 1e-2) + "," + std::to_string(5 + n * 2e-3) + ",";
    if (longest <= 30) text += std::to_string((1 + n * 1e-3) * (longest <= 6 ? 0.5 : 10));
    text += "\n";
  }
  return text;
}

}  // namespace untax::select::test
