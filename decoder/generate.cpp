#include <untax/decoder/generate.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <list>
#include <numeric>
#include <utility>

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

/// One decoder at work. Its sequences are removed in the end, also by an error.
class continuation {
 public:
  continuation(decoder& model, std::span<const std::vector<std::int32_t>> prompts)
      : model_(model), prompts_(prompts) {
    result_.tokens.resize(prompts.size());
  }
  continuation(const continuation&) = delete;
  continuation& operator=(const continuation&) = delete;
  ~continuation() {
    for (const int sequence : sequences_) model_.remove(sequence);
  }

  void prefill(stream_ref stream) {
    const auto start = clock::now();
    const std::int64_t most =
        std::min(model_.options().prompt_tokens, model_.options().prompt_keys);
    while (next_.size() < prompts_.size()) {
      const std::size_t first = next_.size();
      std::vector<decoder::prompt> part;
      for (const auto& tokens : prompts_.subspan(first, fitting(prompts_, first, most))) {
        sequences_.push_back(model_.add());
        part.push_back({.sequence = sequences_.back(), .tokens = tokens});
      }
      model_.prefill(part, stream);
      const auto tokens = model_.read_tokens(stream);
      next_.insert(next_.end(), tokens.begin(), tokens.end());
    }
    result_.first_token_seconds = seconds_since(start);
    note_tokens();
  }

  void step(stream_ref stream) {
    const auto start = clock::now();
    // The tokens of a step are where the next one reads them; prompts may have come in parts.
    const bool are_there = !steps_.empty();
    model_.decode(sequences_, are_there ? std::span<const std::int32_t>() : next_, stream);
    next_ = model_.read_tokens(stream);
    steps_.push_back(seconds_since(start));
    note_tokens();
  }

  [[nodiscard]] generation take() {
    result_.seconds = std::accumulate(steps_.begin(), steps_.end(), result_.first_token_seconds);
    if (!steps_.empty()) {
      const auto middle = steps_.begin() + static_cast<std::ptrdiff_t>(steps_.size() / 2);
      std::nth_element(steps_.begin(), middle, steps_.end());
      result_.step_seconds = *middle;
    }
    return std::move(result_);
  }

 private:
  void note_tokens() {
    for (std::size_t s = 0; s < next_.size(); ++s) result_.tokens[s].push_back(next_[s]);
  }

  decoder& model_;
  std::span<const std::vector<std::int32_t>> prompts_;
  std::vector<int> sequences_;
  std::vector<std::int32_t> next_;
  std::vector<double> steps_;
  generation result_;
};

}  // namespace

generation generate(decoder& model, std::span<const std::vector<std::int32_t>> prompts,
                    std::int64_t count, stream_ref stream) {
  return std::move(generate_in_turn(std::array{&model}, prompts, count, stream).front());
}

std::vector<generation> generate_in_turn(std::span<decoder* const> models,
                                         std::span<const std::vector<std::int32_t>> prompts,
                                         std::int64_t count, stream_ref stream) {
  if (prompts.empty() || count < 1) {
    generation nothing;
    nothing.tokens.resize(prompts.size());
    return std::vector<generation>(models.size(), nothing);
  }
  std::list<continuation> turns;
  for (decoder* model : models) turns.emplace_back(*model, prompts);
  for (continuation& turn : turns) turn.prefill(stream);
  for (std::int64_t i = 1; i < count; ++i) {
    for (continuation& turn : turns) turn.step(stream);
  }
  std::vector<generation> results;
  for (continuation& turn : turns) results.push_back(turn.take());
  return results;
}

}  // namespace untax
