#include <array>
#include <charconv>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <untax/core/error.hpp>
#include <untax/flow/fault_plan.hpp>

namespace untax {
namespace {

constexpr std::array<std::string_view, 7> kinds = {"drop",  "delay", "duplicate", "late_duplicate",
                                                   "stall", "kill",  "exit"};
constexpr std::array<std::string_view, 4> verbs = {"reserve", "acquire", "publish", "retire"};
constexpr std::string_view example = "drop:rank=1,verb=publish,nth=3";

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw error(errc::invalid_argument,
              fmt::format("fault \"{}\": {}; for example \"{}\"", text, why, example));
}

template <class Enum, std::size_t Count>
std::optional<Enum> among(const std::array<std::string_view, Count>& names, std::string_view name) {
  for (std::size_t i = 0; i < Count; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

bool has_duration(fault_kind kind) {
  return kind == fault_kind::delay || kind == fault_kind::stall;
}

bool is_signal(channel_verb verb) {
  return verb == channel_verb::publish || verb == channel_verb::retire;
}

/// Reads the fields of one fault.
class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}

  fault read() {
    const auto colon = text_.find(':');
    const auto kind = among<fault_kind>(kinds, text_.substr(0, colon));
    if (!kind || colon == std::string_view::npos) {
      refuse(text_,
             fmt::format("it has to start with one of {} and a colon", fmt::join(kinds, ", ")));
    }
    fault_.kind = *kind;
    for (std::size_t begin = colon + 1; begin <= text_.size();) {
      const auto end = std::min(text_.find(',', begin), text_.size());
      field(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    if (!given_.contains("rank")) refuse(text_, "it has to say which rank, as rank=0");
    return fault_;
  }

 private:
  void field(std::string_view part) {
    const auto equals = part.find('=');
    if (equals == std::string_view::npos)
      refuse(text_, fmt::format("\"{}\" is not a field; a field is a name, = and a value", part));
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = part.substr(equals + 1);
    if (!given_.emplace(name).second) refuse(text_, fmt::format("{} comes twice", name));
    set(name, value);
  }

  void set(std::string_view name, std::string_view value) {
    const auto index = [&] { return static_cast<int>(number(name, value, 0, int_limit)); };
    if (name == "rank") {
      fault_.rank = index();
    } else if (name == "verb") {
      set_verb(value);
    } else if (name == "epoch") {
      fault_.epoch = number(name, value, 1, large_limit);
    } else if (name == "kernel") {
      fault_.kernel = index();
    } else if (name == "worker") {
      fault_.worker = index();
    } else if (name == "step") {
      fault_.step = index();
    } else if (name == "nth") {
      fault_.nth = number(name, value, 1, large_limit);
    } else if (name == "ms" && has_duration(fault_.kind)) {
      fault_.duration = std::chrono::milliseconds(number(name, value, 0, int_limit));
    } else if (name == "code" && fault_.kind == fault_kind::exit) {
      fault_.code = static_cast<int>(number(name, value, 0, 255));
    } else {
      refuse(text_,
             fmt::format(
                 "{} has no field \"{}\"; it has rank, verb, epoch, kernel, worker, step, nth{}",
                 name_of(fault_.kind), name,
                 has_duration(fault_.kind)         ? ", ms"
                 : fault_.kind == fault_kind::exit ? ", code"
                                                   : ""));
    }
  }

  void set_verb(std::string_view value) {
    fault_.verb = among<channel_verb>(verbs, value);
    if (!fault_.verb || (strikes_signals(fault_.kind) && !is_signal(*fault_.verb))) {
      refuse(text_,
             fmt::format("verb is \"{}\"; for {} it can be {}", value, name_of(fault_.kind),
                         strikes_signals(fault_.kind) ? "publish or retire, which are signals"
                                                      : "reserve, acquire, publish or retire"));
    }
  }

  std::uint64_t number(std::string_view name, std::string_view value, std::uint64_t least,
                       std::uint64_t most) const {
    std::uint64_t read = 0;
    const char* const end = value.data() + value.size();
    const auto [stopped, code] = std::from_chars(value.data(), end, read);
    if (code != std::errc() || stopped != end || read < least || read > most) {
      refuse(text_, fmt::format("{} is \"{}\"; it has to be a whole number between {} and {}", name,
                                value, least, most));
    }
    return read;
  }

  static constexpr std::uint64_t int_limit = std::numeric_limits<int>::max();
  static constexpr std::uint64_t large_limit = std::uint64_t{1} << 62U;

  std::string_view text_;
  fault fault_;
  std::set<std::string, std::less<>> given_;
};

}  // namespace

std::string_view name_of(fault_kind kind) noexcept { return kinds[static_cast<std::size_t>(kind)]; }
std::string_view name_of(channel_verb verb) noexcept {
  return verbs[static_cast<std::size_t>(verb)];
}

fault fault::parse(std::string_view text) { return reader(text).read(); }

fault fault::at(fault_kind kind, const fault_site& site) {
  fault f;
  f.kind = kind;
  f.rank = site.rank;
  f.verb = site.verb;
  f.epoch = site.epoch;
  f.kernel = site.kernel;
  f.worker = site.worker;
  f.step = site.step;
  return f;
}

std::string fault::text() const {
  std::string s = fmt::format("{}:rank={}", name_of(kind), rank);
  if (verb) s += fmt::format(",verb={}", name_of(*verb));
  if (epoch) s += fmt::format(",epoch={}", *epoch);
  if (kernel) s += fmt::format(",kernel={}", *kernel);
  if (worker) s += fmt::format(",worker={}", *worker);
  if (step) s += fmt::format(",step={}", *step);
  s += fmt::format(",nth={}", nth);
  if (has_duration(kind)) s += fmt::format(",ms={}", duration.count());
  if (kind == fault_kind::exit) s += fmt::format(",code={}", code);
  return s;
}

bool fault::matches(const fault_site& site) const noexcept {
  const auto same = [](const auto& wanted, const auto& result) {
    return !wanted || *wanted == result;
  };
  return site.rank == rank && (!strikes_signals(kind) || is_signal(site.verb)) &&
         same(verb, site.verb) && same(epoch, site.epoch) && same(kernel, site.kernel) &&
         same(worker, site.worker) && same(step, site.step);
}

}  // namespace untax
