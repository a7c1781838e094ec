#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/error.hpp>
#include <untax/locality/emit.hpp>
#include <untax/locality/library.hpp>
#include <untax/locality/order_formula.hpp>
#include <untax/locality/published.hpp>
#include <untax/locality/search.hpp>

#include "src/core/text_file.hpp"

#include "arguments.hpp"
#include "files.hpp"
#include "names.hpp"
#include "output.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

constexpr const char* guide =
    "KERNEL is the name of a kernel, or the path of a text that describes one; NAME=VALUE sets its "
    "sizes. `untax locality list` has the names. Where a kernel's blocks drift, as in attention, "
    "events are simulated in the order of time; else all blocks of a wave keep step.\n"
    "\n"
    "Without --search: hits by operand, bytes and time of one order (--order).\n"
    "With --search: all orders are tried, best first, with a bound on every order.\n"
    "--order takes a name (--orders lists them), a formula or the path of a file with a formula or "
    "a "
    "list of blocks. An order that is no bijection is simulated, too; the status is 1 then.\n"
    "\n"
    "  untax locality attention --device mi300x --heads 128 --keys 131072\n"
    "  untax locality attention --device mi300x heads=128 --order \"naive block-first\"\n"
    "  untax locality gemm --device mi300x -m 8192 -n 8192 -k 8192 --search --svg order.svg\n"
    "  untax locality gemm --device mi300x --search --order \"p % 8 * (blocks // 8) + p // 8\"\n"
    "  untax locality gemm --show > mine.txt      # a text to begin with\n"
    "  untax locality mine.txt --device h200 --search --cpp order.hpp --triton order.py\n"
    "  untax locality published                   # figures of others beside the simulation\n"
    "  untax locality sweeps                      # the figures 12 to 16 of arXiv 2511.02132\n"
    "\n"
    "docs/locality.md explains the model and its limits, and how to describe a kernel.";

struct locality_options {
  std::string kernel;
  std::vector<std::string> values;
  std::vector<std::pair<const char*, double>> sizes;
  std::string device;
  std::string order = "as numbered";
  bool is_search = false;
  bool is_orders = false;
  int seeds = 5;
  bool is_show = false;
  std::string json;
  std::string svg;
  std::string cpp;
  std::string hip;
  std::string triton;
};

/// Refuses options that `action`, which simulates nothing, would ignore: all but `own`, and more
/// than `most` words.
void refuse_ignored(const CLI::App& verb, const locality_options& o, const std::string& action,
                    const std::string& own, std::size_t most) {
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "KERNEL" || name == "SIZES" || name == own) continue;
    throw error(errc::invalid_argument,
                fmt::format("{} means nothing to untax locality {}; leave it out", name, action));
  }
  if (o.values.size() <= most) return;
  throw error(errc::invalid_argument,
              fmt::format("\"{}\" means nothing to untax locality {}; leave it out", o.values[most],
                          action));
}

/// Whether a name of a kernel or of a device is a path.
bool is_path(const std::string& name) { return name.find_first_of("./") != std::string::npos; }

/// Throws `invalid_argument` for a name that is neither a built-in name nor a path.
void require_known(const char* what, const std::string& name,
                   const std::vector<locality::named_text>& texts,
                   const std::vector<std::string>& others) {
  if (is_path(name)) return;
  std::vector<std::string> known;
  for (const locality::named_text& text : texts) known.push_back(text.name);
  if (std::ranges::find(known, name) != known.end()) return;
  const std::string names = alternatives(known);
  known.insert(known.end(), others.begin(), others.end());
  throw error(errc::invalid_argument,
              fmt::format("there is no {} \"{}\"; it has to be {}, or the path of a file{}", what,
                          name, names, did_you_mean(name, known)));
}

double number_of(const std::string& text, std::size_t from, const std::string& whole) {
  double value = 0;
  const char* end = text.data() + text.size();
  const bool is_number = std::from_chars(text.data() + from, end, value).ptr == end &&
                         from < text.size() && std::isfinite(value);
  if (!is_number) {
    throw error(errc::invalid_argument,
                fmt::format("\"{}\" is not a size; it has to be NAME=NUMBER", whole));
  }
  return value;
}

locality::kernel::sizes sizes_of(const locality_options& options) {
  locality::kernel::sizes result;
  for (const auto& [name, value] : options.sizes) {
    if (value >= 0) result[name] = value;
  }
  for (const std::string& text : options.values) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) (void)number_of("", 0, text);
    const std::string name = text.substr(0, equals);
    if (!result.emplace(name, number_of(text, equals + 1, text)).second) {
      throw error(errc::invalid_argument,
                  fmt::format("the size {} is given twice; give it once, as {} or as an option",
                              name, text));
    }
  }
  return result;
}

void list() {
  std::string text;
  const auto list_kernels = [&](const char* heading,
                                const std::vector<locality::named_text>& kernels) {
    text += heading;
    for (const locality::named_text& kernel : kernels) {
      const auto k = locality::kernel_named(kernel.name, {});
      text += fmt::format("  {:<31}{}\n", kernel.name, k.title());
    }
  };
  list_kernels("Kernels\n", locality::built_in_kernels());
  list_kernels("Kernels of arXiv 2508.20258 (SwizzlePerf)\n", locality::swizzleperf_kernels());
  text += "Devices\n";
  for (const locality::named_text& device : locality::built_in_devices())
    text += fmt::format("  {:<31}{}\n", device.name, locality::device_named(device.name).title);
  show(text);
}

void write_file(const std::string& path, const std::string& text) {
  if (!path.empty()) write_text(path, text);
}

/// Whether text is printed on stdout, so that no file may go there.
bool prints_text(const locality_options& o) {
  for (const std::string* path : {&o.json, &o.svg, &o.cpp, &o.hip, &o.triton}) {
    if (*path == "-") return false;
  }
  return true;
}

void emit(const locality_options& options, const locality::block_order& order,
          const locality::kernel& k, const locality::device& d) {
  write_file(options.svg, options.svg.empty() ? "" : locality::to_svg(order, k, d));
  write_file(options.cpp, options.cpp.empty() ? "" : locality::to_cpp(order, k));
  write_file(options.hip, options.hip.empty() ? "" : locality::to_hip(order, k));
  write_file(options.triton, options.triton.empty() ? "" : locality::to_triton(order, k));
}

/// A path that is read, for comparison with paths that are written; empty for a built-in name.
std::string read_path(const std::string& name) { return is_path(name) ? name : ""; }

/// The names of the orders of a kernel.
void list_orders(const locality::kernel& k, const locality::device& d) {
  const std::vector<std::string> names = locality::order_names(k, d.domains);
  print(fmt::format("{}\n", fmt::join(names, "\n")));
}

/// Whether the text of --order is a formula, and not a name or the path of a file.
bool is_formula(const std::string& text) {
  return text.find_first_of("=+*%&|^<>~\n") != std::string::npos ||
         text.find("//") != std::string::npos || text.find(" / ") != std::string::npos;
}

/// The order of --order as its numbers, if it is a formula or a list.
std::optional<locality::order_formula> own_order(const locality_options& options,
                                                 const locality::kernel& k,
                                                 const locality::device& d) {
  if (is_formula(options.order))
    return locality::order_formula::read(options.order, "--order", k, d.domains);
  if (!is_path(options.order)) return {};
  constexpr std::size_t most_bytes = std::size_t{1} << 28;
  return locality::order_formula::read(text_of_file(options.order, {.bytes = most_bytes}),
                                       options.order, k, d.domains);
}

locality::assumptions assumed(const locality_options& options) {
  locality::assumptions how;
  how.seeds = options.seeds;
  return how;
}

/// Simulates an order of the user that is no bijection.
void judge_wrong(const locality_options& options, const locality::order_formula& own,
                 const locality::kernel& k, const locality::device& d) {
  for (const std::string* path : {&options.svg, &options.cpp, &options.hip, &options.triton}) {
    if (!path->empty()) (void)own.order();  // throws the refusal
  }
  const locality::order_verdict verdict = locality::judge(own.numbers());
  std::string text = fmt::format("{}\n{}\n\n{}{}\n", k.title(), d.title,
                                 static_cast<char>(std::toupper(verdict.text().front())),
                                 verdict.text().substr(1));
  if (verdict.outside == 0) {
    const std::vector<int> blocks(own.numbers().begin(), own.numbers().end());
    const locality::outcome result = locality::simulate(k, d, {blocks, {}}, {}, assumed(options));
    write_file(options.json, options.json.empty()
                                 ? ""
                                 : locality::json_of(result, k, d, options.order, &verdict));
    text += fmt::format("\nThe result of the kernel is wrong. Where it does these blocks:\n{}",
                        locality::text_of(result, k, d));
  }
  const locality::certificate limit = locality::certify(k, d);
  text += fmt::format("No order that does each block once hits more than {:.1f} %.\n",
                      100 * limit.limit);
  if (prints_text(options)) show(text);
}

void carry_out(const CLI::App& verb, const locality_options& options, int& status) {
  if (options.kernel == "list") {
    refuse_ignored(verb, options, "list", "", 0);
    return list();
  }
  if (options.kernel == "published") {
    refuse_ignored(verb, options, "published", "", 1);
    const std::string only = options.values.empty() ? "" : options.values.front();
    const std::string figures = locality::markdown_of(locality::published(only));
    const std::string patterns = locality::markdown_of(locality::published_patterns(only));
    return print(figures + (figures.empty() || patterns.empty() ? "" : "\n") + patterns);
  }
  if (options.kernel == "sweeps") {
    refuse_ignored(verb, options, "sweeps", "--seeds", 0);
    progress_bar bar("locality sweeps", locality::sweep_simulations());
    const std::string text = locality::sweeps(options.seeds, [&bar] { bar.advance(); });
    bar.clear();
    return print(text);
  }
  std::vector<locality::named_text> kernels = locality::built_in_kernels();
  for (locality::named_text& text : locality::swizzleperf_kernels())
    kernels.push_back(std::move(text));
  require_known("kernel", options.kernel, kernels, {"list", "published", "sweeps"});
  if (options.is_show) {
    refuse_ignored(verb, options, "--show", "--show", 0);
    return print(locality::kernel_text(options.kernel));
  }
  refuse_same_paths({{"--json", options.json},
                     {"--svg", options.svg},
                     {"--cpp", options.cpp},
                     {"--hip", options.hip},
                     {"--triton", options.triton},
                     {"KERNEL", read_path(options.kernel)},
                     {"--order", is_formula(options.order) ? "" : read_path(options.order)},
                     {"--device", read_path(options.device)}});
  const locality::kernel::sizes sizes = sizes_of(options);
  if (options.device.empty()) {
    throw error(errc::invalid_argument,
                "untax locality needs --device; untax locality list has the names (untax locality "
                "--help)");
  }
  require_known("device", options.device, locality::built_in_devices(), {});
  const locality::device d = locality::device_named(options.device);
  const locality::kernel k = locality::kernel_named(options.kernel, sizes, d.sector);
  if (options.is_orders) return list_orders(k, d);
  const std::optional<locality::order_formula> own = own_order(options, k, d);
  if (own && !locality::judge(own->numbers()).is_bijection()) {
    if (options.is_search) (void)own->order();  // throws the refusal
    status = 1;
    return judge_wrong(options, *own, k, d);
  }
  const locality::block_order order =
      own ? own->order() : locality::order_named(k, d.domains, options.order);
  if (options.is_search) {
    locality::search_options asked;
    asked.baseline = order;
    asked.how = assumed(options);
    std::optional<progress_bar> bar;
    asked.begin = [&bar](int steps) { bar.emplace("locality", steps); };
    asked.progress = [&bar] { bar->advance(); };
    const locality::search_result result = locality::search(k, d, asked);
    bar.reset();
    write_file(options.json, options.json.empty() ? "" : locality::json_of(result, k, d));
    if (prints_text(options)) show(locality::text_of(result, k, d));
    return emit(options, result.best.front().order, k, d);
  }
  const locality::outcome result =
      locality::simulate(k, d, {order.table(k.blocks()), order.way}, {}, assumed(options));
  write_file(options.json, options.json.empty() ? "" : locality::json_of(result, k, d, order.name));
  if (prints_text(options)) {
    show(fmt::format("{}\n{}: {} blocks, {}\n\n{}", k.title(), d.title, k.blocks(), order.name,
                     locality::text_of(result, k, d)));
  }
  emit(options, order, k, d);
}

}  // namespace

void add_locality(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "locality", "Simulate the cache hits of an order of blocks, and search the best order");
  const auto options = std::make_shared<locality_options>();
  verb->add_option("KERNEL", options->kernel, "a name, a path, list, published or sweeps")
      ->required();
  verb->add_option("SIZES", options->values, "of the kernel: NAME=NUMBER");
  verb->add_option("--device", options->device, "a name, or the path of a .json");
  verb->add_option("--order", options->order,
                   "to simulate, or to compare with in --search: a name, a formula or a file")
      ->capture_default_str();
  verb->add_flag("--orders", options->is_orders, "list the names of all orders");
  verb->add_flag("--search", options->is_search, "try all orders");
  verb->add_option("--seeds", options->seeds,
                   "simulations whose mean and spread are shown, where blocks drift")
      ->check(between(1, 64))
      ->capture_default_str();
  verb->add_flag("--show", options->is_show, "print the text that describes the kernel");
  static constexpr std::tuple<const char*, const char*> named[] = {
      {"-m", "m"},          {"-n", "n"},
      {"-k", "k"},          {"--batches", "batches"},
      {"--heads", "heads"}, {"--kv-heads", "kv_heads"},
      {"--keys", "keys"},   {"--queries", "queries"},
      {"--width", "width"}, {"--causal", "causal"}};
  options->sizes.reserve(std::size(named));
  for (const auto& [option, name] : named) {
    options->sizes.emplace_back(name, -1);
    verb->add_option(option, options->sizes.back().second, fmt::format("the size {}", name))
        ->check(not_negative());
  }
  for (const auto& [name, to, what] :
       {std::tuple{"--json", &options->json, "write the figures as JSON"},
        std::tuple{"--svg", &options->svg, "write a picture of which block runs where"},
        std::tuple{"--cpp", &options->cpp, "write the order as C++, with untax/order"},
        std::tuple{"--hip,--cuda", &options->hip,
                   "write it as a function of HIP, CUDA and plain C++"},
        std::tuple{"--triton", &options->triton, "write it as a function of Triton"}}) {
    verb->add_option(name, *to, fmt::format("{}; - for stdout", what))->check(writable_file());
  }
  verb->footer(guide);
  verb->callback([verb, options, &status] { carry_out(*verb, *options, status); });
}

}  // namespace untax::cli
