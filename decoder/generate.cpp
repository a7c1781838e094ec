#include <untax/decoder/generate.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace untax {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// The number of prompts from `first` on that one prefill takes; at least one.
std::size_t fitting(std::span<const std::vector<std::int32_t>> prompts, std::size_t first,
                    std::int64_t most) {
  std::int64_t tokens = 0;
  std::size_t end = first;
  while (end < prompts.size()) {
    tokens += static_cast<std::int64_t>(prompts[end].size());
    if (tokens > most) break;
    ++end;
  }
  return std::max(end - first, std::size_t{1});
}

/// Sequences that are removed in the end, also by an error.
class sequence_set {
 public:
  explicit sequence_set(decoder& model) : model_(model) {}
  sequence_set(const sequence_set&) = delete;
  sequence_set& operator=(const sequence_set&) = delete;
  ~sequence_set() {
    for (const int sequence : numbers) model_.remove(sequence);
  }
  int add() {
    numbers.push_back(model_.add());
    return numbers.back();
  }

  std::vector<int> numbers;

 private:
  decoder& model_;
};

}  // namespace

generation generate(decoder& model, std::span<const std::vector<std::int32_t>> prompts,
                    std::int64_t count, stream_ref stream) {
  generation result;
  result.tokens.resize(prompts.size());
  if (prompts.empty() || count < 1) return result;
  sequence_set sequences(model);
  std::vector<std::int32_t> next;
  const auto start = clock::now();
  while (next.size() < prompts.size()) {
    const std::size_t first = next.size();
    std::vector<decoder::prompt> part;
    for (const auto& tokens : prompts.subspan(
             first,
             fitting(prompts, first,
                     std::min(model.options().prompt_tokens, model.options().prompt_keys)))) {
      part.push_back({.sequence = sequences.add(), .tokens = tokens});
    }
    model.prefill(part, stream);
    const auto tokens = model.read_tokens(stream);
    next.insert(next.end(), tokens.begin(), tokens.end());
  }
  result.first_token_seconds = seconds_since(start);
  std::vector<double> steps;
  for (std::int64_t i = 0;; ++i) {
    for (std::size_t s = 0; s < next.size(); ++s) result.tokens[s].push_back(next[s]);
    if (i + 1 == count) break;
    const auto begin = clock::now();
    model.decode(sequences.numbers, next, stream);
    next = model.read_tokens(stream);
    steps.push_back(seconds_since(begin));
  }
  result.seconds = seconds_since(start);
  if (steps.empty()) return result;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  result.step_seconds = *middle;
  return result;
}

}  // namespace untax
