#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rma_test {

/// Random inputs of one test. The seed is fresh each time; a failure prints it through `trace()`.
class random_inputs {
 public:
  random_inputs() : random_inputs(std::random_device{}()) {}
  explicit random_inputs(std::uint32_t seed) : seed_(seed), engine_(seed) {}

  [[nodiscard]] std::string trace() const { return "seed " + std::to_string(seed_); }
  /// From `least` to `most`, both included.
  [[nodiscard]] std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }
  /// Whole numbers that every element type holds.
  template <class T>
  [[nodiscard]] std::vector<T> values(std::int64_t count) {
    std::vector<T> made(static_cast<std::size_t>(count));
    for (T& value : made) value = T(static_cast<float>(number(0, 127)));
    return made;
  }

 private:
  std::uint32_t seed_;
  std::mt19937 engine_;
};

}  // namespace rma_test
