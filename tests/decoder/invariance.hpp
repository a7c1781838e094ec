#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <untax/decoder/decoder.hpp>

namespace untax_test {

/// Prompts and tokens at random, each sequence alone and then beside others that come and go: the
/// bits of its logits have to be equal. The draw is the same at all ranks.
class invariance_trial {
 public:
  invariance_trial(const untax::decoder_config& config, untax::decoder_options options,
                   std::uint64_t seed)
      : config_(config), options_(options), seed_(seed), random_(seed) {
    options_.invariant = true;
    options_.logits = true;
    options_.prompt_tokens = options_.sequences * options_.tokens;
    sequences_.resize(static_cast<std::size_t>(options_.sequences));
    for (sequence& s : sequences_) {
      s.prompt.resize(
          static_cast<std::size_t>(between(1, static_cast<int>(options_.tokens) - steps)));
      s.next.resize(steps);
      for (auto* tokens : {&s.prompt, &s.next})
        for (std::int32_t& token : *tokens)
          token = between(0, static_cast<int>(config_.vocabulary) - 1);
    }
  }

  /// Collective.
  void run(untax::world& w) {
    SCOPED_TRACE(testing::Message() << config_.family << ", seed " << seed_);
    untax::decoder model = untax::decoder::random(w, config_, seed_, options_);
    for (sequence& s : sequences_) {
      s.number = model.add();
      model.prefill(std::vector<untax::decoder::prompt>{{s.number, s.prompt}});
      s.right.push_back(model.read_logits());
      for (const std::int32_t token : s.next) {
        model.decode(std::vector{s.number}, std::vector{token});
        s.right.push_back(model.read_logits());
      }
      model.remove(s.number);
    }
    run_beside_others(model);
  }

 private:
  static constexpr int steps = 6;

  struct sequence {
    std::vector<std::int32_t> prompt;
    std::vector<std::int32_t> next;
    std::vector<std::vector<float>> right;  ///< the logits after the prompt and each step, alone
    int number = -1;
    std::size_t done = 0;  ///< runs that it took part in
  };

  [[nodiscard]] int between(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random_);
  }
  /// Some of the sequences that have taken part in `begun` runs, or if not, in fewer than all.
  [[nodiscard]] std::vector<sequence*> some(bool begun) {
    std::vector<sequence*> chosen;
    while (chosen.empty()) {
      bool is_any_left = false;
      for (sequence& s : sequences_) {
        const bool fits = begun ? s.done > 0 && s.done < s.right.size() : s.done == 0;
        is_any_left = is_any_left || fits;
        if (fits && between(0, 2) > 0) chosen.push_back(&s);
      }
      if (!is_any_left) break;
    }
    return chosen;
  }
  void expect_bits(const untax::decoder& model, const std::vector<sequence*>& rows) {
    const std::vector<float> logits = model.read_logits();
    const auto width = static_cast<std::ptrdiff_t>(config_.vocabulary);
    auto begin = logits.begin();
    for (sequence* s : rows) {
      const std::vector<float> own(begin, begin + width);
      EXPECT_EQ(own == s->right[s->done], true)
          << "sequence " << s->number << " of " << s->prompt.size() << " tokens, run " << s->done
          << ", beside " << rows.size() - 1;
      begin += width;
      ++s->done;
    }
  }
  void run_beside_others(untax::decoder& model) {
    for (;;) {
      const std::vector<sequence*> prompts = some(false);
      const std::vector<sequence*> going = some(true);
      if (prompts.empty() && going.empty()) return;
      if (!prompts.empty()) {
        std::vector<untax::decoder::prompt> given;
        for (sequence* s : prompts) {
          s->number = model.add();
          given.push_back({s->number, s->prompt});
        }
        model.prefill(given);
        expect_bits(model, prompts);
      }
      if (going.empty()) continue;
      std::vector<int> numbers;
      std::vector<std::int32_t> tokens;
      for (const sequence* s : going) {
        numbers.push_back(s->number);
        tokens.push_back(s->next[s->done - 1]);
      }
      model.decode(numbers, tokens);
      expect_bits(model, going);
    }
  }

  untax::decoder_config config_;
  untax::decoder_options options_;
  std::uint64_t seed_;
  std::mt19937_64 random_;
  std::vector<sequence> sequences_;
};

}  // namespace untax_test
