#include <untax/locality/device.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"

namespace untax::locality {
namespace {

using json = nlohmann::ordered_json;

/// Reads the fields of a JSON object. Errors name the field and its fault.
class fields {
 public:
  fields(const json& from, std::string where, std::vector<std::string> known)
      : from_(from), where_(std::move(where)) {
    if (!from.is_object()) refuse("has to be an object in braces");
    for (const auto& [name, value] : from.items()) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        refuse(fmt::format("has no field \"{}\"; the fields are {}", name, fmt::join(known, ", ")));
    }
  }

  [[nodiscard]] double number(const char* name, double least, double most) const {
    if (!from_.contains(name)) refuse(fmt::format("needs the field \"{}\", a number", name));
    const json& value = from_[name];
    if (!value.is_number() || !(value.get<double>() >= least) || !(value.get<double>() <= most)) {
      refuse(fmt::format("has the field \"{}\" = {}; it has to be a number from {} to {}", name,
                         shown(value), least, most));
    }
    return value.get<double>();
  }
  [[nodiscard]] int whole(const char* name, double least, double most) const {
    const double value = number(name, least, most);
    if (value != std::floor(value))
      refuse(fmt::format("has the field \"{}\" = {}; it has to be a whole number", name, value));
    return static_cast<int>(value);
  }
  [[nodiscard]] std::string text(const char* name) const {
    if (!from_.contains(name) || !from_[name].is_string())
      refuse(fmt::format("needs the field \"{}\", a text", name));
    return from_[name].get<std::string>();
  }
  [[nodiscard]] bool has(const char* name) const { return from_.contains(name); }
  [[nodiscard]] const json& at(const char* name) const {
    if (!has(name)) refuse(fmt::format("needs the field \"{}\"", name));
    return from_[name];
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::invalid_argument, fmt::format("{} {}", where_, what));
  }

  const json& from_;
  std::string where_;
};

constexpr double mega = 1024 * 1024;
constexpr double large = 1e9;

level cache_of(const json& from, const std::string& where, std::vector<std::string> more = {}) {
  std::vector<std::string> known{"megabytes", "ways", "gigabytes_per_second", "extra_nanoseconds"};
  known.insert(known.end(), more.begin(), more.end());
  const fields of(from, where, known);
  level result;
  result.bytes = of.number("megabytes", 1e-3, large) * mega;
  result.ways = of.whole("ways", 1, 1024);
  result.bytes_per_second = of.number("gigabytes_per_second", 1e-3, large) * 1e9;
  result.latency = of.has("extra_nanoseconds") ? of.number("extra_nanoseconds", 0, 1e6) * 1e-9 : 0;
  result.sides = of.has("sides") ? of.whole("sides", 1, 64) : 1;
  result.channels = of.has("channels") ? of.whole("channels", 1, 1024) : 1;
  result.channel_bytes = result.channels > 1 ? of.whole("channel_bytes", 16, 1 << 20) : 0;
  result.far_latency = of.has("far_nanoseconds") ? of.number("far_nanoseconds", 0, 1e6) * 1e-9 : 0;
  return result;
}

}  // namespace

device read_device(std::string_view text, std::string_view origin) {
  const json document = parse_json<json>(text, origin);
  const fields of(
      document, fmt::format("{}: the device", origin),
      {"name", "title", "domains", "processors_per_domain", "dispatch_chunk", "line", "sector",
       "bytes_of_write", "teraflops", "cache", "last_level", "memory", "sources"});
  device result;
  result.name = of.text("name");
  result.title = of.text("title");
  result.domains = of.whole("domains", 1, 1024);
  result.processors = of.whole("processors_per_domain", 1, 4096);
  result.chunk = of.whole("dispatch_chunk", 1, 1 << 20);
  result.line = of.whole("line", 16, 4096);
  result.sector = of.has("sector") ? of.whole("sector", 16, result.line) : result.line;
  result.write = of.has("bytes_of_write") ? of.whole("bytes_of_write", 16, result.line) : 0;
  result.flops = of.number("teraflops", 1e-3, large) * 1e12;
  result.cache = cache_of(of.at("cache"), fmt::format("{}: cache", origin),
                          {"sides", "far_nanoseconds", "channels", "channel_bytes"});
  if (of.has("last_level"))
    result.last_level = cache_of(of.at("last_level"), fmt::format("{}: last_level", origin));
  const fields memory(of.at("memory"), fmt::format("{}: memory", origin),
                      {"gigabytes_per_second", "extra_nanoseconds", "bytes_at_once"});
  result.fetch =
      memory.has("bytes_at_once") ? memory.whole("bytes_at_once", 16, 8192) : result.sector;
  if (result.fetch != result.sector && result.fetch != 2 * result.sector) {
    throw error(errc::invalid_argument,
                fmt::format("{}: memory: the field \"bytes_at_once\" is {}; it has to be {} or {}, "
                            "a sector or two",
                            origin, result.fetch, result.sector, 2 * result.sector));
  }
  result.memory.bytes_per_second = memory.number("gigabytes_per_second", 1e-3, large) * 1e9;
  result.memory.latency = memory.number("extra_nanoseconds", 0, 1e6) * 1e-9;
  return result;
}

}  // namespace untax::locality
