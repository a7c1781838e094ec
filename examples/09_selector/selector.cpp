// A selector for kernels of your own: three ways to sort, measured, and a tree that chooses.
// docs/tutorials/09-selector.md explains it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <untax/select/emit.hpp>
#include <untax/select/training.hpp>

namespace us = untax::select;
using numbers = std::vector<std::uint32_t>;

// The candidates.
void insertion(numbers& v) {
  for (std::size_t i = 1; i < v.size(); ++i) {
    const std::uint32_t now = v[i];
    std::size_t at = i;
    for (; at > 0 && v[at - 1] > now; --at) v[at] = v[at - 1];
    v[at] = now;
  }
}
void radix(numbers& v) {
  numbers to(v.size());
  for (int shift = 0; shift < 32; shift += 8) {
    std::array<std::size_t, 257> begin{};
    for (const std::uint32_t one : v) ++begin[(one >> shift & 255U) + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    for (const std::uint32_t one : v) to[begin[one >> shift & 255U]++] = one;
    v.swap(to);
  }
}
void introspective(numbers& v) { std::sort(v.begin(), v.end()); }
const std::vector<std::function<void(numbers&)>> kernels = {insertion, radix, introspective};

// A feature that takes a pass over the input: how many numbers are smaller than the one before.
double descents(const numbers& v) {
  double found = 0;
  for (std::size_t i = 1; i < v.size(); ++i) found += v[i] < v[i - 1] ? 1 : 0;
  return found;
}

// Ascending numbers, of which every `every`th is replaced by a number out of order.
numbers input(std::size_t n, std::size_t every) {
  numbers v;
  for (std::uint32_t i = 0; i < n; ++i) v.push_back(i % every == 0 ? i * 2654435761U : i << 10U);
  return v;
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string measured() {
  std::string csv = "n,descents,gather,t_insertion,t_radix,t_introspective\n";
  for (std::size_t n = 8; n <= 4096; n *= 2) {
    for (const std::size_t every : {1, 2, 5, 20, 1000, 100000}) {
      const numbers v = input(n, every);
      double found = 0;
      const double gather = seconds([&] { found = descents(v); });
      csv += std::to_string(n) + "," + std::to_string(found) + "," + std::to_string(1e6 * gather);
      for (const auto& kernel : kernels) {
        double best = 1;
        for (int i = 0; i < 5; ++i) {
          numbers copy = v;
          best = std::min(best, seconds([&] { kernel(copy); }));
        }
        csv += "," + std::to_string(std::max(1e6 * best, 1e-3));
      }
      csv += "\n";
    }
  }
  return csv;
}

int main() {
  const us::schema what = us::read_schema(R"({
    "title": "sorting", "known": ["n"], "gathered": ["descents"], "gathering": "gather",
    "unit": 1e-6, "candidates": [{"name": "insertion", "time": "t_insertion", "guard": "descents <= 64"},
      {"name": "radix", "time": "t_radix"}, {"name": "introspective", "time": "t_introspective"}]})",
                                          "sorting.json");
  const us::selector chooser = us::train(us::read_csv(measured(), "sorting.csv", what));
  std::printf("%s", us::to_text(chooser).c_str());

  for (const std::size_t every : {1, 1000}) {
    numbers v = input(3000, every);
    const us::choice taken = chooser.choose(std::vector<double>{3000}, 1,
                                            [&] { return std::vector<double>{descents(v)}; });
    kernels[static_cast<std::size_t>(taken.candidate)](v);
    std::printf("%s: %s\n", what.candidates[static_cast<std::size_t>(taken.candidate)].name.c_str(),
                std::is_sorted(v.begin(), v.end()) ? "sorted" : "WRONG");
    if (!std::is_sorted(v.begin(), v.end())) return 1;
  }
}
