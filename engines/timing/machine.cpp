#include "engines/timing/machine.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"

namespace untax::timing {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view format_name = "untax-machine";
constexpr int format_version = 1;
constexpr int most_gpus = 65536;
constexpr int least_processors = 4;  // the fewest multiprocessors that kernels are planned for
constexpr std::string_view kind_of_cores = "cores";
constexpr std::array<std::string_view, 4> link_names = {"nvswitch", "ring", "pairs", "host"};

/// Reads one document. Every error names the document and the field.
class machine_reader {
 public:
  explicit machine_reader(const std::string& origin) : origin_(origin) {}

  machine read(std::string_view text) {
    const json in = parse_json<json>(text, origin_);
    if (!in.is_object()) refuse("it is not a JSON object");
    if (field(in, "format") != format_name || field(in, "format_version") != format_version) {
      refuse(fmt::format("its format is {} {}; it has to be \"{}\" {}", shown(in["format"]),
                         shown(in["format_version"]), format_name, format_version));
    }
    machine m;
    m.name = text_of(in, "name");
    m.device = text_of(in, "device");
    if (!field(in, "measured").is_boolean())
      refuse(fmt::format("\"measured\" is {}; it has to be true or false", shown(in["measured"])));
    m.measured = in["measured"].get<bool>();
    m.cores = in.contains("kind") && is_cores(text_of(in, "kind"));
    m.gpus = count_of(in, "gpus", 1);
    m.gpus_of_host = count_of(in, "gpus_of_host", 1);
    m.cards_of_host = count_of(in, "cards_of_host", 0);
    m.links = links_of(text_of(in, "links"));
    if (in.contains("calibration")) m.calibration = text_of(in, "calibration");
    if (in.contains("judgement")) m.judgement = text_of(in, "judgement");
    read_numbers(field(in, "numbers"), m);
    check(m);
    return m;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::invalid_argument, fmt::format("{}: {}", origin_, what));
  }
  const json& field(const json& in, const char* name) const {
    if (!in.contains(name)) refuse(fmt::format("\"{}\" is missing", name));
    return in.at(name);
  }
  std::string text_of(const json& in, const char* name) const {
    const json& entry = field(in, name);
    if (!entry.is_string() || entry.get<std::string>().empty())
      refuse(fmt::format("\"{}\" is {}; it has to be a text", name, shown(entry)));
    return entry.get<std::string>();
  }
  int count_of(const json& in, const char* name, int least) const {
    const json& entry = field(in, name);
    const double value = entry.is_number_integer() ? entry.get<double>() : -1;
    if (value < least || value > most_gpus) {
      refuse(fmt::format("\"{}\" is {}; it has to be a whole number from {} to {}", name,
                         shown(entry), least, most_gpus));
    }
    return static_cast<int>(value);
  }
  bool is_cores(const std::string& kind) const {
    if (kind == "gpus" || kind == kind_of_cores) return kind == kind_of_cores;
    refuse(fmt::format("\"kind\" is \"{}\"; it has to be gpus or {}", kind, kind_of_cores));
  }
  link_kind links_of(const std::string& name) const {
    for (std::size_t i = 0; i < link_names.size(); ++i) {
      if (link_names[i] == name) return static_cast<link_kind>(i);
    }
    refuse(fmt::format("\"links\" is \"{}\"; it has to be one of {}", name,
                       fmt::join(link_names, ", ")));
  }

  void read_numbers(const json& in, machine& m) const {
    if (!in.is_object()) refuse("\"numbers\" has to be an object");
    for (const auto& [key, value] : in.items()) {
      const number_kind* kind = nullptr;
      for (const number_kind& entry : number_kinds) {
        if (entry.key == key) kind = &entry;
      }
      if (kind == nullptr) {
        std::string known;
        for (const number_kind& entry : number_kinds)
          known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.key);
        refuse(fmt::format("number \"{}\" is not known; known are {}", key, known));
      }
      read_number(*kind, value, m);
    }
    for (const number_kind& entry : number_kinds) {
      if (!in.contains(entry.key))
        refuse(fmt::format("number \"{}\" is missing: {}, in {}", entry.key, entry.meaning,
                           entry.unit));
    }
  }
  void read_number(const number_kind& kind, const json& in, machine& m) const {
    if (!in.is_object() || !in.contains("value") || !in.contains("from")) {
      refuse(fmt::format("number \"{}\" is {}; it has to be {{\"value\": ..., \"from\": \"...\"}}",
                         kind.key, shown(in)));
    }
    const json& value = in["value"];
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(number) || number < kind.least || number > kind.most) {
      refuse(fmt::format("number \"{}\" is {} {}; it has to be from {} to {}", kind.key,
                         shown(value), kind.unit, kind.least, kind.most));
    }
    if (!in["from"].is_string() || in["from"].get<std::string>().empty()) {
      refuse(fmt::format("\"from\" of number \"{}\" is {}; it has to say where the number is from",
                         kind.key, shown(in["from"])));
    }
    m.numbers.*kind.value = number;
    m.sources.emplace(kind.key, in["from"].get<std::string>());
  }

  void check(const machine& m) const {
    if (!m.cores && m.numbers.processors < least_processors) {
      refuse(fmt::format("number \"processors\" is {}; GPUs have {} or more", m.numbers.processors,
                         least_processors));
    }
    if (m.gpus % m.gpus_of_host != 0) {
      refuse(fmt::format("\"gpus\" is {} and \"gpus_of_host\" {}; the first has to be a multiple",
                         m.gpus, m.gpus_of_host));
    }
    const bool hosts = m.gpus > m.gpus_of_host;
    if (hosts && (m.cards_of_host == 0 || m.numbers.card_rate == 0)) {
      refuse(fmt::format(
          "{} hosts need network cards: \"cards_of_host\" is {}, \"card_rate\" {}; both have to be "
          "above 0",
          m.gpus / m.gpus_of_host, m.cards_of_host, m.numbers.card_rate));
    }
    const bool through_host = m.links == link_kind::pairs || m.links == link_kind::host;
    if (through_host && m.numbers.host_rate == 0) {
      refuse(fmt::format("\"links\" are \"{}\" and number \"host_rate\" is 0; it has to be above 0",
                         name_of(m.links)));
    }
    if (m.links == link_kind::pairs && m.gpus_of_host % 2 != 0) {
      refuse(fmt::format("\"links\" are \"pairs\" and \"gpus_of_host\" is {}; it has to be even",
                         m.gpus_of_host));
    }
  }

  const std::string& origin_;
};

constexpr double longest = 1;      // seconds of a latency
constexpr double quickest = 1e15;  // bytes a second

}  // namespace

const std::array<number_kind, 22> number_kinds = {{
    {&machine_numbers::processors, "processors", "", 1, 4096, "multiprocessors of a GPU"},
    {&machine_numbers::hertz, "hertz", "Hz", 1e6, 1e11, "clock while they multiply"},
    {&machine_numbers::flops, "flops", "FLOP/s", 1e9, 1e18, "of a large GEMM"},
    {&machine_numbers::memory_rate, "memory_rate", "B/s", 1e9, quickest, "read from memory"},
    {&machine_numbers::launch_eager, "launch_eager", "s", 0, longest,
     "between kernels that a host launches"},
    {&machine_numbers::launch_graph, "launch_graph", "s", 0, longest,
     "between two kernels of a graph"},
    {&machine_numbers::start, "start", "s", 0, longest, "until the first kernel of a graph works"},
    {&machine_numbers::link_rate, "link_rate", "B/s", 1e6, quickest, "out of a GPU to its peers"},
    {&machine_numbers::read_rate, "read_rate", "B/s", 1e6, quickest, "read from peers"},
    {&machine_numbers::block_rate, "block_rate", "B/s", 1e6, quickest, "that one block moves"},
    {&machine_numbers::store, "store", "s", 0, longest, "until a peer sees a store"},
    {&machine_numbers::release, "release", "s", 0, longest, "longer for a release behind data"},
    {&machine_numbers::look, "look", "s", 0, longest, "from a signal to the rank that waits"},
    {&machine_numbers::copy_start, "copy_start", "s", 0, longest, "until a copy engine begins"},
    {&machine_numbers::library_start, "library_start", "s", 0, longest,
     "of a collective of a library"},
    {&machine_numbers::library_hop, "library_hop", "s", 0, longest, "each further hop of its ring"},
    {&machine_numbers::library_run, "library_run", "s", 0, longest,
     "a host's, to launch a collective and a GEMM of libraries"},
    {&machine_numbers::host_rate, "host_rate", "B/s", 0, quickest, "through the host, one way"},
    {&machine_numbers::host_store, "host_store", "s", 0, longest, "a store through the host"},
    {&machine_numbers::card_rate, "card_rate", "B/s", 0, quickest, "of a network card, one way"},
    {&machine_numbers::card_store, "card_store", "s", 0, longest, "a store between hosts"},
    {&machine_numbers::jitter, "jitter", "s", 0, longest, "ranks begin so much apart, at most"},
}};

std::string machine::title() const {
  return measured ? name : name + " (nobody measured this machine)";
}

double machine::seconds_to_send(double bytes, int ranks) const noexcept {
  if (ranks < 2) return 0;
  const int near = std::min(ranks, gpus_of_host) - 1;
  const double each = bytes / (ranks - 1);
  const double away = each * (ranks - 1 - near) * gpus_of_host / std::max(cards_of_host, 1);
  double seconds = away > 0 ? away / numbers.card_rate : 0;
  if (links == link_kind::host || (links == link_kind::pairs && near > 1)) {
    const int through = links == link_kind::host ? near : near - 1;
    return std::max(seconds, each * through / numbers.host_rate);
  }
  return std::max(seconds, each * near / numbers.link_rate);
}

std::string_view name_of(link_kind kind) noexcept {
  return link_names[static_cast<std::size_t>(kind)];
}

machine parse_machine(std::string_view text, const std::string& origin) {
  return machine_reader(origin).read(text);
}

machine load_machine(const std::string& path) {
  std::string text;
  try {
    text = text_of_file(path);
  } catch (const error& wrong) {
    throw error(wrong.code(),
                fmt::format("{}; give a description of a machine, such as those in machines/",
                            wrong.what()));
  }
  return parse_machine(text, path);
}

std::string to_json(const machine& m) {
  json out = {{"format", format_name},
              {"format_version", format_version},
              {"name", m.name},
              {"device", m.device},
              {"measured", m.measured},
              {"kind", m.cores ? kind_of_cores : "gpus"},
              {"gpus", m.gpus},
              {"gpus_of_host", m.gpus_of_host},
              {"cards_of_host", m.cards_of_host},
              {"links", name_of(m.links)}};
  if (!m.calibration.empty()) out["calibration"] = m.calibration;
  if (!m.judgement.empty()) out["judgement"] = m.judgement;
  for (const number_kind& kind : number_kinds) {
    const auto from = m.sources.find(kind.key);
    out["numbers"][std::string(kind.key)] = {
        {"value", m.numbers.*kind.value},
        {"from", from == m.sources.end() ? "not said" : from->second}};
  }
  return out.dump(1) + "\n";
}

}  // namespace untax::timing
