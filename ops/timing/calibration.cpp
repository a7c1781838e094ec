#include "ops/timing/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"

namespace untax {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view calibration_format = "untax-calibration";
constexpr int calibration_version = 1;
constexpr std::size_t most_lines = 4;
constexpr std::size_t most_shown = 80;  // characters of an entry in an error
constexpr std::string_view calibration_advice = "`untax machine --fit` writes such files";

double log_ratio(double a, double b) { return std::log2(a / b); }

[[noreturn]] void refuse(const std::string& origin, const std::string& what) {
  throw error(errc::invalid_argument, fmt::format("{}: {}; {}", origin, what, calibration_advice));
}

void read_entry(const json& object, const std::string& origin, std::size_t number,
                calibration& into) {
  const bool right = object.is_array() && object.size() == 5 && object[0].is_string() &&
                     std::all_of(object.begin() + 1, object.end(), [](const json& v) {
                       return v.is_number() && v.get<double>() > 0;
                     });
  if (!right) {
    refuse(origin, fmt::format("entry {} is {}; it has to be [kind, m, n, k, ratio], the last four "
                               "above 0",
                               number, object.dump().substr(0, most_shown)));
  }
  into.add({object[0].get<std::string>(), object[1].get<double>(), object[2].get<double>(),
            object[3].get<double>()},
           object[4].get<double>());
}

}  // namespace

void calibration::add(const calibration_key& key, double ratio) {
  value& v = lines_[key.what][{key.n, key.k}][key.m];
  v.log_sum += std::log(ratio);
  ++v.count;
}

std::size_t calibration::entries() const {
  std::size_t count = 0;
  for (const auto& [what, lines] : lines_) {
    for (const auto& [size, one] : lines) count += one.size();
  }
  return count;
}

double calibration::ratio(const calibration_key& key) const {
  const auto kind = lines_.find(key.what);
  if (kind == lines_.end()) return 1;
  struct found {
    double distance;
    double log;
  };
  std::vector<found> near;
  for (const auto& [size, one] : kind->second) {
    const auto mean = [](const line::const_iterator at) {
      return at->second.log_sum / at->second.count;
    };
    const auto above = one.lower_bound(key.m);
    double distance =
        std::pow(log_ratio(key.n, size.first), 2) + std::pow(log_ratio(key.k, size.second), 2);
    double log = 0;
    if (above == one.end() || above == one.begin()) {
      const auto end = above == one.end() ? std::prev(above) : above;
      distance += std::pow(log_ratio(key.m, end->first), 2);
      log = mean(end);
    } else {
      const auto below = std::prev(above);
      const double share = log_ratio(key.m, below->first) / log_ratio(above->first, below->first);
      log = mean(below) + share * (mean(above) - mean(below));
    }
    near.push_back({distance, log});
  }
  std::ranges::sort(near, {}, &found::distance);
  if (near.size() > most_lines) near.resize(most_lines);
  double sum = 0;
  double weights = 0;
  for (const found& n : near) {
    const double weight = 1 / (n.distance + 1e-9);
    sum += weight * n.log;
    weights += weight;
  }
  return std::exp(sum / weights);
}

calibration parse_calibration(std::string_view text, const std::string& origin) {
  const json in = parse_json<json>(text, origin, {.advice = calibration_advice});
  if (!in.is_object()) refuse(origin, "it is not a JSON object");
  if (!in.contains("format") || in["format"] != calibration_format ||
      !in.contains("format_version") || in["format_version"] != calibration_version) {
    refuse(origin,
           fmt::format("its format has to be \"{}\" {}", calibration_format, calibration_version));
  }
  calibration result;
  if (!in.contains("device") || !in["device"].is_string())
    refuse(origin, "\"device\" has to be a text");
  result.device = in["device"].get<std::string>();
  if (!in.contains("files") || !in["files"].is_array())
    refuse(origin, "\"files\" has to be a list");
  for (const json& file : in["files"]) {
    if (!file.is_string()) refuse(origin, "\"files\" has to hold texts");
    result.files.push_back(file.get<std::string>());
  }
  if (!in.contains("entries") || !in["entries"].is_array())
    refuse(origin, "\"entries\" has to be a list");
  std::size_t number = 0;
  for (const json& object : in["entries"]) read_entry(object, origin, ++number, result);
  return result;
}

calibration load_calibration(const std::string& path) {
  return parse_calibration(text_of_file(path), path);
}

std::string to_json(const calibration& c) {
  std::string text = fmt::format(
      "{{\n \"format\": \"{}\",\n \"format_version\": {},\n \"device\": {},\n \"files\": {},\n "
      "\"entries\": [\n",
      calibration_format, calibration_version, json(c.device).dump(), json(c.files).dump());
  std::string separator;
  for (const auto& [what, lines] : c.lines_) {
    for (const auto& [size, one] : lines) {
      for (const auto& [m, v] : one) {
        text +=
            fmt::format("{}  [{}, {:.10g}, {:.10g}, {:.10g}, {:.4f}]", separator, json(what).dump(),
                        m, size.first, size.second, std::exp(v.log_sum / v.count));
        separator = ",\n";
      }
    }
  }
  return text + "\n ]\n}\n";
}

}  // namespace untax
