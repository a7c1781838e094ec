#include <cmath>
#include <cstdint>

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
                fmt::format("{}: it is not a summary of a judgement; {}", path, summary_advice));
  }
  const bool marked = in.contains("fingerprint") && in["fingerprint"].is_string();
  return {in["device"].get<std::string>(), static_cast<int>(number("ranks")), number("mean_error"),
          marked ? in["fingerprint"].get<std::string>() : std::string()};
}

std::string fingerprint_of(const timing::machine& m, const calibration& known) {
  std::string text = fmt::format("{} {}", m.device, name_of(m.links));
  for (const timing::number_kind& kind : timing::number_kinds)
    text += fmt::format(" {}={:.17g}", kind.key, m.numbers.*kind.value);
  text += to_json(known);
  // FNV-1a.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

std::string summary_of(const judgement& result, const timing::machine& m,
                       const calibration& known) {
  const nlohmann::ordered_json out = {{"format", summary_format},
                                      {"format_version", summary_version},
                                      {"device", m.device},
                                      {"ranks", result.ranks},
                                      {"figures", result.figures.size()},
                                      {"mean_error", std::round(1000 * result.mean_error) / 1000},
                                      {"fingerprint", fingerprint_of(m, known)}};
  return out.dump(1) + "\n";
}

}  // namespace untax
