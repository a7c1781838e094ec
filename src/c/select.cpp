#include <untax/c/select.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/select/emit.hpp>
#include <untax/select/schema.hpp>
#include <untax/select/table.hpp>
#include <untax/select/training.hpp>

#include "failure.hpp"
#include "src/core/text_file.hpp"

/// The object behind a selector handle.
struct untax_selector {
  explicit untax_selector(untax::select::selector trained)
      : chooser(std::move(trained)),
        json(untax::select::to_json(chooser)),
        text(untax::select::to_text(chooser)) {
    for (const auto& f : chooser.what().features) {
      if (f.given) (f.gathered ? gathered : known).push_back(f.name);
    }
  }

  untax::select::selector chooser;
  std::string json;
  std::string text;
  std::vector<std::string> known;     ///< names of given features that need no gathering
  std::vector<std::string> gathered;  ///< names of given features that `gather` computes
};

namespace untax::c {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw error(errc::invalid_argument, what); }

select::table table_of(std::string_view text, const select::schema& what) {
  text = utf8_text(text, "table");
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool list = first != std::string_view::npos && text[first] == '[';
  return list ? select::read_json(text, "table", what) : select::read_csv(text, "table", what);
}

select::choice choose(const untax_selector& s, std::span<const double> known, double iterations,
                      untax_gather gather, void* context) {
  if (known.size() != s.known.size()) {
    std::string names;
    for (const std::string& name : s.known) names += (names.empty() ? "" : ", ") + name;
    refuse(fmt::format("{} known features are given; there are {}: {}", known.size(),
                       s.known.size(), names));
  }
  if (!(iterations > 0) || !std::isfinite(iterations))
    refuse(fmt::format("iterations is {}; it has to be a number above 0", iterations));
  if (gather == nullptr) return {s.chooser.by_known(known, iterations), false};
  return s.chooser.choose(known, iterations, [&] {
    std::vector<double> features(s.gathered.size());
    if (gather(context, features.data()) != 0)
      throw error(errc::aborted, "gathering features has failed");
    return features;
  });
}

/// The name with that number; null if there is none.
const char* named(const std::vector<std::string>& names, std::int32_t number) {
  if (number < 0 || static_cast<std::size_t>(number) >= names.size()) return nullptr;
  return names[static_cast<std::size_t>(number)].c_str();
}

}  // namespace
}  // namespace untax::c

using untax::c::guarded;
using untax::c::require;

int32_t untax_selector_train(const char* schema, const char* table, uint64_t seed,
                             untax_selector** selector) {
  return guarded(nullptr, [&] {
    require(schema, "schema");
    require(table, "table");
    require(selector, "selector");
    const auto what = untax::select::read_schema(schema, "schema");
    untax::select::training_options options;
    options.seed = seed;
    auto trained = untax::select::train(untax::c::table_of(table, what), options);
    *selector = std::make_unique<untax_selector>(std::move(trained)).release();
  });
}

int32_t untax_selector_read(const char* json, untax_selector** selector) {
  return guarded(nullptr, [&] {
    require(json, "json");
    require(selector, "selector");
    auto read = untax::select::read_selector(json, "selector");
    *selector = std::make_unique<untax_selector>(std::move(read)).release();
  });
}

int32_t untax_selector_destroy(untax_selector* selector) {
  return guarded(nullptr, [&] { delete selector; });
}

const char* untax_selector_json(const untax_selector* selector) {
  return selector == nullptr ? "" : selector->json.c_str();
}

const char* untax_selector_text(const untax_selector* selector) {
  return selector == nullptr ? "" : selector->text.c_str();
}

const char* untax_selector_feature(const untax_selector* selector, int32_t number,
                                   int32_t* gathered) {
  if (selector == nullptr) return nullptr;
  const auto known = static_cast<int32_t>(selector->known.size());
  if (gathered != nullptr) *gathered = number < known ? 0 : 1;
  return number < known ? untax::c::named(selector->known, number)
                        : untax::c::named(selector->gathered, number - known);
}

const char* untax_selector_candidate(const untax_selector* selector, int32_t number) {
  if (selector == nullptr || number < 0) return nullptr;
  const auto& candidates = selector->chooser.what().candidates;
  const auto i = static_cast<std::size_t>(number);
  return i < candidates.size() ? candidates[i].name.c_str() : nullptr;
}

int32_t untax_selector_choose(const untax_selector* selector, const double* known, int32_t count,
                              double iterations, untax_gather gather, void* context,
                              int32_t* candidate, int32_t* gathered) {
  return guarded(nullptr, [&] {
    require(selector, "selector");
    require(candidate, "candidate");
    if (count > 0) require(known, "known");
    const std::span<const double> given(known, static_cast<std::size_t>(count > 0 ? count : 0));
    const auto chosen = untax::c::choose(*selector, given, iterations, gather, context);
    *candidate = chosen.candidate;
    if (gathered != nullptr) *gathered = chosen.gathered ? 1 : 0;
  });
}
