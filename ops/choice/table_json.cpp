#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "ops/choice/table.hpp"
#include "ops/common/registry.hpp"
#include "src/core/json.hpp"

namespace untax {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view format_name = "untax-tune";
/// Version 1 had no hash of the kernels, and no operators that sum.
constexpr int format_version = 2;
constexpr int oldest_version = 1;
constexpr std::size_t hash_digits = 16;
constexpr std::string_view advice = "`untax bench tune` writes such files";

std::vector<std::string_view> known_operators() {
  std::vector<std::string_view> names;
  for (const operator_entry& entry : operators()) names.push_back(entry.name);
  return names;
}

/// Reads one document. Every error names the document and the place in it.
class table_reader {
 public:
  explicit table_reader(const std::string& origin) : origin_(origin) {}

  tuning_table read(std::string_view text) {
    const json in = parse_json<json>(text, origin_, {.advice = advice});
    if (!in.is_object()) refuse("it is not a JSON object");
    const json& format = field(in, "format");
    const json& version = field(in, "format_version");
    if (format != format_name || (version != format_version && version != oldest_version)) {
      refuse(fmt::format("its format is {} {}; it has to be \"{}\" {} or {}", shown(format),
                         shown(version), format_name, oldest_version, format_version));
    }
    tuning_table table;
    table.device = text_of(in, "device");
    constexpr std::array types = {name_of(dtype::bf16), name_of(dtype::f16)};
    table.type = place_of(text_of(in, "dtype"), types, "dtype") == 0 ? dtype::bf16 : dtype::f16;
    table.date = text_of(in, "date");
    table.commit = text_of(in, "commit");
    if (version == format_version) table.kernels = hash_of(in, "kernels");
    table.version = text_of(in, "version");
    table.driver = text_of(in, "driver");
    table.library = text_of(in, "library");
    table.repeats = static_cast<int>(count_of(in, "repeats", 1, 1'000'000));
    const json& rates = field(in, "rates");
    table.rates = {positive(rates, "flops_per_second"), positive(rates, "memory_bytes_per_second"),
                   positive(rates, "link_bytes_per_second")};
    const json& entries = field(in, "entries");
    if (!entries.is_array() || entries.empty()) refuse("entries have to be a list of at least one");
    for (const json& object : entries) {
      where_ = fmt::format("entry {}: ", table.entries.size() + 1);
      table.entries.push_back(entry(object));
    }
    return table;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::invalid_argument, fmt::format("{}: {}{}; {}", origin_, where_, what, advice));
  }

  const json& field(const json& in, const char* name) const {
    if (!in.is_object() || !in.contains(name)) refuse(fmt::format("\"{}\" is missing", name));
    return in.at(name);
  }
  std::string text_of(const json& in, const char* name) const {
    const json& entry = field(in, name);
    if (!entry.is_string())
      refuse(fmt::format("\"{}\" is {}; it has to be a text", name, shown(entry)));
    return entry.get<std::string>();
  }
  std::string hash_of(const json& in, const char* name) const {
    const std::string text = text_of(in, name);
    if (text.size() != hash_digits ||
        text.find_first_not_of("0123456789abcdef") != std::string::npos) {
      refuse(fmt::format("\"{}\" is \"{}\"; it has to be a hash of {} digits 0 to 9 and a to f",
                         name, text, hash_digits));
    }
    return text;
  }
  std::int64_t count_of(const json& in, const char* name, std::int64_t least,
                        std::int64_t most) const {
    const json& entry = field(in, name);
    const bool whole = entry.is_number_integer();
    if (!whole || entry.get<std::int64_t>() < least || entry.get<std::int64_t>() > most) {
      refuse(fmt::format("\"{}\" is {}; it has to be a whole number from {} to {}", name,
                         shown(entry), least, most));
    }
    return entry.get<std::int64_t>();
  }
  double positive(const json& in, const std::string& name) const {
    const json& entry = field(in, name.c_str());
    const double value = entry.is_number() ? entry.get<double>() : 0;
    if (!std::isfinite(value) || value <= 0) {
      refuse(fmt::format("\"{}\" is {}; it has to be a number above 0", name, shown(entry)));
    }
    return value;
  }
  template <class Names>
  std::size_t place_of(const std::string& text, const Names& names, const char* what) const {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) return i;
    }
    std::string known;
    for (const auto& name : names) known += (known.empty() ? "" : ", ") + std::string(name);
    refuse(fmt::format("{} \"{}\" is not known; known are {}", what, text, known));
  }

  tuning_entry entry(const json& in) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    tuning_entry tuned;
    tuned_problem& p = tuned.problem;
    p.operator_name = text_of(in, "operator");
    (void)place_of(p.operator_name, known_operators(), "operator");
    if (p.gathers()) {
      const std::array axes = {name_of(gather_axis::rows), name_of(gather_axis::k)};
      p.gather =
          place_of(text_of(in, "gather"), axes, "gather") == 0 ? gather_axis::rows : gather_axis::k;
    } else if (in.contains("gather")) {
      refuse(fmt::format("{} gathers nothing, and \"gather\" is {}", p.operator_name,
                         shown(in.at("gather"))));
    }
    if (p.sums_to()) {
      const std::array types = {name_of(dtype::bf16), name_of(dtype::f32)};
      p.partials =
          place_of(text_of(in, "partials"), types, "partials") == 0 ? dtype::bf16 : dtype::f32;
    } else if (in.contains("partials")) {
      refuse(fmt::format("{} has no partial results, and \"partials\" is {}", p.operator_name,
                         shown(in.at("partials"))));
    }
    p.ranks = static_cast<int>(count_of(in, "ranks", 2, 1024));
    p.m = count_of(in, "m", 1, most);
    p.n = count_of(in, "n", 1, most);
    p.k = count_of(in, "k", 1, most);
    if (!known_.insert({p.operator_name, p.gather, p.partials, p.ranks, p.m, p.n, p.k}).second)
      refuse(fmt::format("{}, {} occurs twice", family_text(p), shape_text(p)));
    read_seconds(field(in, "seconds"), tuned);
    return tuned;
  }

  void read_seconds(const json& in, tuning_entry& entry) const {
    if (!in.is_object() || in.empty())
      refuse(fmt::format("\"seconds\" is {}; it has to hold a time for each pattern", shown(in)));
    std::array<std::string_view, all_patterns.size() - 1> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = name_of(all_patterns[i + 1]);
    for (const auto& [name, value] : in.items())
      entry.seconds[all_patterns[place_of(name, names, "pattern") + 1]] = positive(in, name);
  }

  const std::string& origin_;
  std::string where_;
  std::set<
      std::tuple<std::string, gather_axis, dtype, int, std::int64_t, std::int64_t, std::int64_t>>
      known_;
};

/// Rounded to four digits: a measurement is no more precise.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

json from(const tuning_entry& entry) {
  const tuned_problem& p = entry.problem;
  json out = {{"operator", p.operator_name}};
  if (p.gathers()) out["gather"] = name_of(p.gather);
  if (p.sums_to()) out["partials"] = name_of(p.partials);
  out["ranks"] = p.ranks;
  out["m"] = p.m;
  out["n"] = p.n;
  out["k"] = p.k;
  for (const auto& [how, seconds] : entry.seconds)
    out["seconds"][std::string(name_of(how))] = rounded(seconds);
  return out;
}

}  // namespace

tuning_table parse_table(std::string_view text, const std::string& origin) {
  return table_reader(origin).read(text);
}

tuning_table load_table(const std::string& path) {
  std::string text;
  try {
    text = text_of_file(path);
  } catch (const error& wrong) {
    throw error(wrong.code(), fmt::format("{}; {}", wrong.what(), advice));
  }
  return parse_table(text, path);
}

std::string to_json(const tuning_table& t) {
  json head = {{"format", format_name},
               {"format_version", format_version},
               {"device", t.device},
               {"dtype", name_of(t.type)},
               {"date", t.date},
               {"commit", t.commit},
               {"kernels", t.kernels},
               {"version", t.version},
               {"driver", t.driver},
               {"library", t.library},
               {"repeats", t.repeats},
               {"rates",
                {{"flops_per_second", rounded(t.rates.flops)},
                 {"memory_bytes_per_second", rounded(t.rates.memory)},
                 {"link_bytes_per_second", rounded(t.rates.link)}}}};
  std::string text = head.dump(1);
  text.resize(text.size() - 2);  // the brace that ends it, on a line of its own
  text += ",\n \"entries\": [\n";
  for (std::size_t i = 0; i < t.entries.size(); ++i)
    text += "  " + from(t.entries[i]).dump() + (i + 1 < t.entries.size() ? ",\n" : "\n");
  return text + " ]\n}\n";
}

}  // namespace untax
