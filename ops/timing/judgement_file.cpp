#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "ops/timing/judgement.hpp"
#include "src/core/json.hpp"

namespace untax {
namespace {

constexpr const char* summary_format = "untax-judgement-summary";
constexpr int summary_version = 1;
constexpr std::string_view summary_advice = "`untax machine --judge ... --out` writes such files";

}  // namespace

judgement_summary load_judgement(const std::string& path) {
  const nlohmann::json in = read_json(path, {.advice = summary_advice});
  const auto number = [&](const char* key) {
    return in.contains(key) && in[key].is_number() ? in[key].get<double>() : -1.0;
  };
  const bool right = in.is_object() && in.contains("format") && in["format"] == summary_format &&
                     in.contains("format_version") && in["format_version"] == summary_version &&
                     in.contains("device") && in["device"].is_string() && number("ranks") >= 1 &&
                     number("mean_error") >= 0;
  if (!right) {
    throw error(errc::invalid_argument,
                fmt::format("{}: it is no summary of a judgement; {}", path, summary_advice));
  }
  return {in["device"].get<std::string>(), static_cast<int>(number("ranks")), number("mean_error")};
}

std::string summary_of(const judgement& result, const timing::machine& m) {
  const nlohmann::ordered_json out = {{"format", summary_format},
                                      {"format_version", summary_version},
                                      {"device", m.device},
                                      {"ranks", result.ranks},
                                      {"figures", result.figures.size()},
                                      {"mean_error", std::round(1000 * result.mean_error) / 1000}};
  return out.dump(1) + "\n";
}

}  // namespace untax
