#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/error.hpp>
#include <untax/select/emit.hpp>
#include <untax/select/evaluation.hpp>
#include <untax/select/training.hpp>

#include "arguments.hpp"
#include "files.hpp"
#include "names.hpp"
#include "option_use.hpp"
#include "output.hpp"
#include "src/core/text_file.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

constexpr const char* select_guide =
    "train:    --schema S --table T; --json, --header, --text and --svg take the trees\n"
    "evaluate: --schema S --table T judges by cross-validation; --selector F --table T judges a\n"
    "          selector on records that it has not seen; --json and --svg take the figures\n"
    "schema:   TABLE; drafts a schema from the columns of a table, on stdout\n"
    "explain:  --selector F NAME=VALUE ...; the way to the choice for one input\n"
    "emit:     --selector F; --header, --text, --svg and --json\n"
    "\n"
    "A schema gives the meaning of columns in a table of run times; docs/select.md describes it.\n"
    "Several --table are joined by the labels of the schema.\n"
    "\n"
    "  untax select evaluate --schema bench/select/V100.json --table bench/select/V100.csv.gz\n"
    "  untax select train --schema S --table T --json spmv.json --header spmv.hpp\n"
    "  untax select explain --selector spmv.json rows=1000 cols=1000 nnz=9000 iterations=100";

struct select_options {
  std::string action;
  std::string schema;
  std::vector<std::string> tables;
  std::string selector;
  std::string json;
  std::string header;
  std::string space = "selector";
  std::string text;
  std::string svg;
  std::string against;
  std::vector<std::string> values;
  select::training_options training;
  std::uint64_t deal = 11;
};

/// Refuses options that the action would ignore, and files that would be written twice or are also
/// read.
void require_fitting(const CLI::App& verb, const select_options& o, const std::string& action) {
  static const std::vector<option_use> uses = {
      {{"--schema", "--table", "--seed", "--folds", "--depth", "--leaves", "--tail"},
       {"train", "evaluate"}},
      {{"--selector"}, {"evaluate", "explain", "emit"}},
      {{"--json", "--svg"}, {"train", "evaluate", "emit"}},
      {{"--header", "--text", "--namespace"}, {"train", "emit"}},
      {{"--deal", "--against"}, {"evaluate"}}};
  refuse_foreign_options(verb, uses, "untax select ", action);
  if (verb.count("--namespace") > 0 && o.header.empty())
    throw error(errc::invalid_argument, "--namespace means nothing without --header; leave it out");
  if (action == "evaluate" && !o.selector.empty())
    option_check(verb, "untax select evaluate with --selector")
        .refuse({"--seed", "--folds", "--depth", "--leaves", "--tail", "--deal"}, "trains nothing");
  std::vector<std::pair<std::string, std::string>> paths = {
      {"--json", o.json}, {"--header", o.header}, {"--text", o.text},
      {"--svg", o.svg},   {"--schema", o.schema}, {"--selector", o.selector}};
  for (const std::string& table : o.tables) paths.emplace_back("--table", table);
  refuse_same_paths(paths);
}

const std::string& needed(const std::string& value, const char* option, const char* action) {
  if (!value.empty()) return value;
  throw error(errc::invalid_argument,
              fmt::format("untax select {} needs {} (untax select --help)", action, option));
}

select::schema schema_of(const select_options& options, const char* action) {
  const std::string& path = needed(options.schema, "--schema", action);
  return select::read_schema(text_of_file(path), path);
}

select::selector selector_of(const select_options& options, const char* action) {
  const std::string& path = needed(options.selector, "--selector", action);
  return select::read_selector(text_of_file(path), path);
}

void write_if_asked(const std::string& path, const std::string& text) {
  if (!path.empty()) write_text(path, text);
}

/// Writes all requested forms of a selector; prints its text if there is no request.
void emit(const select::selector& chooser, const select_options& options) {
  write_if_asked(options.json, select::to_json(chooser));
  if (!options.header.empty())
    write_text(options.header, select::to_header(chooser, options.space));
  write_if_asked(options.svg, select::to_svg(chooser));
  write_if_asked(options.text, select::to_text(chooser));
  const bool any = !(options.json + options.header + options.svg + options.text).empty();
  if (!any) print(select::to_text(chooser));
}

/// The records of all tables. Prints on stderr which times are left out.
select::table table_of(const select_options& options, const char* action,
                       const select::schema& what) {
  (void)needed(options.tables.empty() ? "" : options.tables.front(), "--table", action);
  select::table table = select::read_tables(options.tables, what);
  if (table.zero_times > 0) {
    complain(fmt::format("{}: {} times are 0, below what its clock can tell; they are left out",
                         fmt::join(options.tables, ", "), table.zero_times));
  }
  return table;
}

void draft(const select_options& options) {
  if (options.values.size() != 1) {
    throw error(errc::invalid_argument,
                "untax select schema takes the path of a table (untax select --help)");
  }
  print(select::to_json(select::draft_schema(options.values.front())));
}

void train(const select_options& options) {
  const select::table table = table_of(options, "train", schema_of(options, "train"));
  emit(select::train(table, options.training), options);
}

void evaluate(const select_options& options) {
  if (options.schema.empty() == options.selector.empty()) {
    throw error(errc::invalid_argument,
                "untax select evaluate needs either --schema, for cross-validation, or --selector, "
                "to judge one (untax select --help)");
  }
  select::judgement result;
  select::table table;
  std::string title;
  if (options.selector.empty()) {
    table = table_of(options, "evaluate", schema_of(options, "evaluate"));
    title = table.what.title;
    result = select::cross_validate(table, options.training.folds, options.deal, options.training);
  } else {
    const select::selector chooser = selector_of(options, "evaluate");
    title = chooser.what().title;
    table = table_of(options, "evaluate", chooser.what());
    result = select::evaluate(chooser, table, options.training.weights);
  }
  std::vector<select::speedup> over;
  if (!options.against.empty()) over = select::speedups_over(options.against, result, table);
  write_if_asked(options.json, select::json_of(result, over));
  write_if_asked(options.svg, select::svg_of(result, title));
  if (options.json == "-" || options.svg == "-") return;
  show(select::text_of(result));
  for (const select::speedup& s : over) {
    show(
        "{} runs: the selector is {:.3f} times as fast as the best of {}* for each of {} records "
        "(geometric mean), at least {:.3f} times ({})\n",
        s.iterations, s.mean, options.against, s.records, s.least, s.lowest);
  }
}

/// The values of `names` in texts such as "rows=1000"; NaN where there is none.
std::vector<double> values_of(const std::vector<std::string>& texts,
                              const std::vector<std::string>& names) {
  std::vector<double> given(names.size(), std::nan(""));
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    double value = 0;
    const char* end = text.data() + text.size();
    const bool is_number = equals != std::string::npos &&
                           std::from_chars(text.data() + equals + 1, end, value).ptr == end &&
                           std::isfinite(value);
    if (!is_number) {
      throw error(errc::invalid_argument,
                  fmt::format("\"{}\" is not a value; it has to be NAME=NUMBER", text));
    }
    const std::size_t place = place_in("the feature", text.substr(0, equals), names);
    if (!std::isnan(given[place])) {
      throw error(errc::invalid_argument,
                  fmt::format("{} is given twice; give it once", names[place]));
    }
    given[place] = value;
  }
  return given;
}

/// Explains the choice for values such as "rows=1000".
void explain(const select_options& options) {
  const select::selector chooser = selector_of(options, "explain");
  std::vector<std::string> names;
  for (const select::feature& f : chooser.what().features) {
    if (f.given) names.push_back(f.name);
  }
  names.emplace_back("iterations");
  std::vector<double> given = values_of(options.values, names);
  const double iterations = std::isnan(given.back()) ? 1 : given.back();
  given.pop_back();
  // Either all gathered features are given, or none.
  const auto is_given = [](double value) { return !std::isnan(value); };
  const auto known = chooser.features().given_known();
  const auto gathered = std::span(given).subspan(known);
  const bool with_gathered = std::ranges::any_of(gathered, is_given);
  for (std::size_t i = 0; i < (with_gathered ? given.size() : known); ++i) {
    if (is_given(given[i])) continue;
    throw error(errc::invalid_argument,
                fmt::format("{} is missing; give {}=NUMBER{}", names[i], names[i],
                            i < known ? "" : ", or none of the features that are gathered"));
  }
  if (!with_gathered) given.resize(known);
  print(chooser.explain(given, iterations));
}

void carry_out(const CLI::App& verb, const select_options& options) {
  using action = void (*)(const select_options&);
  const std::vector<std::string> names = {"train", "evaluate", "schema", "explain", "emit"};
  const std::vector<action> actions = {
      train, evaluate, draft, explain,
      [](const select_options& o) { emit(selector_of(o, "emit"), o); }};
  const std::size_t asked = place_in("the action", options.action, names);
  if (!options.values.empty() && names[asked] != "explain" && names[asked] != "schema") {
    throw error(errc::invalid_argument, fmt::format("untax select {} takes no \"{}\" (untax select "
                                                    "--help)",
                                                    names[asked], options.values.front()));
  }
  require_fitting(verb, options, names[asked]);
  actions[asked](options);
}

}  // namespace

void add_select(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("select", "Train and judge decision trees that choose kernels");
  const auto options = std::make_shared<select_options>();
  verb->add_option("ACTION", options->action, "train, evaluate, schema, explain or emit")
      ->required()
      ->check(words({"train", "evaluate", "schema", "explain", "emit"}));
  verb->add_option("VALUES", options->values, "of explain: NAME=NUMBER; of schema: a table");
  verb->add_option("--schema", options->schema, "JSON with the meaning of columns");
  verb->add_option("--table", options->tables, "run times: .csv, .json, or either with .gz")
      ->take_all();
  verb->add_option("--selector", options->selector, "a file that train wrote with --json");
  for (const auto& [name, to, what] :
       {std::tuple{"--json", &options->json, "write the selector, or the figures, as JSON"},
        std::tuple{"--header", &options->header, "write a C++ header"},
        std::tuple{"--text", &options->text, "write the trees as text"},
        std::tuple{"--svg", &options->svg, "write a picture"}}) {
    verb->add_option(name, *to, fmt::format("{}; - for stdout", what))->check(writable_file());
  }
  verb->add_option("--namespace", options->space, "of the header")->capture_default_str();
  verb->add_option("--folds", options->training.folds, "of cross-validation")
      ->check(between(2, 1000))
      ->capture_default_str();
  verb->add_option("--seed", options->training.seed, "of training: deals its records")
      ->capture_default_str();
  verb->add_option("--deal", options->deal, "seed that deals records for evaluate")
      ->capture_default_str();
  verb->add_option("--against", options->against,
                   "of evaluate: beside the best of the candidates whose names begin like this");
  verb->add_option("--depth", options->training.largest.depth, "of trees, at most")
      ->check(between(0, 40))
      ->capture_default_str();
  verb->add_option("--leaves", options->training.largest.leaves, "of a tree, at most")
      ->check(between(1, 1000))
      ->capture_default_str();
  verb->add_option("--tail", options->training.weights.tail,
                   "of training: the weight of large errors of single inputs")
      ->check(not_negative())
      ->capture_default_str();
  verb->footer(select_guide);
  verb->callback([verb, options] { carry_out(*verb, *options); });
}

}  // namespace untax::cli
