#include "decoder/random_weights.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <thread>
#include <vector>

#include "decoder/convert.hpp"
#include "decoder/tensor_names.hpp"

namespace untax {
namespace {

/// The mixing function of splitmix64.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(std::string_view name) {  // FNV-1a, the same on every machine
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// Nearly N(0, 1): the sum of four parts of a word, each even over its range.
float normal(std::uint64_t bits) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<float>((bits >> (16 * i)) & 0xffff) / 65535.0F - 0.5F;
  }
  return sum * std::sqrt(3.0F);
}

/// Calls `fill` with every row below `rows`, on all cores if the tensor is large: one takes a
/// minute for a model of 8 billion weights.
template <class Fill>
void each_row(std::int64_t rows, std::int64_t cols, const Fill& fill) {
  constexpr std::int64_t few = std::int64_t{1} << 18;
  const std::int64_t cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t threads = std::clamp<std::int64_t>(rows * cols / few, 1, cores);
  const auto part = [&](std::int64_t i) {
    for (std::int64_t r = rows * i / threads; r < rows * (i + 1) / threads; ++r) fill(r);
  };
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(part, i);
  part(0);
}

}  // namespace

random_weights::random_weights(const decoder_config& config, std::uint64_t seed)
    : seed_(mixed(seed)),
      norm_offset_(config.norm_offset),
      tensors_(tensors_of(config, "model.")) {}

std::optional<weight_source::shape> random_weights::find(const std::string& name) const {
  const auto entry = tensors_.find(name);
  return entry == tensors_.end() ? std::nullopt : std::optional(entry->second);
}

void random_weights::read(const std::string& name, const index_range& rows, const index_range& cols,
                          const matrix& to) {
  const shape full = tensors_.at(name);
  const std::uint64_t start = mixed(seed_ ^ hash_of(name));
  const bool norm = full.rows == 1 && !name.ends_with(".bias");
  const bool embedding = name.ends_with("embed_tokens.weight");
  const float scale = norm || full.rows == 1 ? 0.1F
                      : embedding            ? 1.0F
                                             : 1 / std::sqrt(static_cast<float>(full.cols));
  const float mean = norm ? 1 - norm_offset_ : 0;
  each_row(rows.size(), cols.size(), [&](std::int64_t r) {
    for (std::int64_t c = 0; c < cols.size(); ++c) {
      const auto place = static_cast<std::uint64_t>((rows.begin + r) * full.cols + cols.begin + c);
      set_element(to.data, to.type, r * to.stride + c, mean + scale * normal(mixed(start + place)));
    }
  });
}

}  // namespace untax
