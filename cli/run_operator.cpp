#include "run_operator.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"
#include "names.hpp"
#include "run_request.hpp"
#include "run_subjects.hpp"

namespace untax::cli {
namespace {

/// Fields whose options in the command have other names than the field with dashes.
struct flag_name {
  std::string_view field;
  std::string_view flags;
};
constexpr flag_name flag_names[] = {{"m", "-m"},
                                    {"n", "-n"},
                                    {"k", "-k"},
                                    {"count", "-n,--count"},
                                    {"type", "--dtype"},
                                    {"gather_k", "--gather"},
                                    {"pull", "--direction"},
                                    {"eager", "--launch"}};

/// Fields that the command sets itself: it runs patterns in turn, and inputs have the size of the
/// problem.
constexpr std::string_view own_fields[] = {"pattern", "varying_rows", "varying_count",
                                           "varying_tokens", "counts"};

std::string flags_of(std::string_view name) {
  const auto place = std::ranges::find(flag_names, name, &flag_name::field);
  if (place != std::end(flag_names)) return std::string(place->flags);
  std::string flags = fmt::format("--{}", name);
  std::ranges::replace(flags, '_', '-');
  return flags;
}

/// The last of the names of an option, for messages.
std::string flag_of(const field& f) {
  const std::string flags = flags_of(f.name);
  return flags.substr(flags.find(',') + 1);
}

bool is_offered(const operator_spec& operation, const field& f) {
  return std::ranges::find(own_fields, f.name) == std::end(own_fields) &&
         std::ranges::find(operation.without, f.name) == operation.without.end();
}

std::vector<std::string> words_of(const field& f) {
  std::vector<std::string> words;
  for (const field_word& word : f.words) words.emplace_back(word.name);
  return words;
}

/// The value of a field of the example, as the help shows it; empty for values that untax chooses.
std::string default_text(const field& f, const void* object) {
  const field_value value = f.load(object);
  for (const field_word& word : f.words)
    if (word.number == value.integer) return std::string(word.name);
  if (f.kind == field_kind::integer && value.integer != 0) return std::to_string(value.integer);
  if (f.kind == field_kind::real && value.real != 0) return fmt::format("{:g}", value.real);
  return "";
}

/// Adds the option of a field of `object`, which has to outlive the parser.
void add_option(CLI::App& verb, const field& f, void* object) {
  const std::string flags = flags_of(f.name);
  const std::string help(f.help);
  if (!f.words.empty()) {
    const std::string text = fmt::format("{}: {}", help, alternatives(words_of(f)));
    verb.add_option_function<std::string>(
            flags,
            [&f, object](const std::string& word) {
              const std::size_t place = place_in(flag_of(f), word, words_of(f));
              store(f, object, {.integer = f.words[place].number});
            },
            text)
        ->check(words(words_of(f)))
        ->default_str(default_text(f, object));
  } else if (f.kind == field_kind::flag) {
    verb.add_flag_function(
        flags, [&f, object](std::int64_t count) { store(f, object, {.integer = count > 0}); },
        help);
  } else if (f.kind == field_kind::real) {
    verb.add_option_function<double>(
            flags, [&f, object](double value) { store(f, object, {.real = value}); }, help)
        ->check(not_negative())
        ->default_str(default_text(f, object));
  } else {
    verb.add_option_function<std::int64_t>(
            flags, [&f, object](std::int64_t value) { store(f, object, {.integer = value}); }, help)
        ->check(between(f.least, f.most))
        ->default_str(default_text(f, object));
  }
}

template <class Operator>
class typed_operator final : public run_operator {
 public:
  void add_options(CLI::App& verb) override {
    for_each_offered([&](const field& f, void* object) { add_option(verb, f, object); });
    if constexpr (has_uneven) {
      verb.add_flag("--unequal", uneven_, "parts, or shards of sequences, differ in size");
    }
  }
  [[nodiscard]] trial_subject subject(const CLI::App& verb, const run_place& place) override {
    // Tensor cores of GPUs take elements of 16 bits.
    if (place.backend == "cuda" && verb.count("--dtype") == 0) problem_.type = dtype::bf16;
    const memory_kind memory = memory_of(place);
    for_each_offered([&](const field& f, void* /*object*/) { refuse_elsewhere(verb, f, memory); });
    return run_subject<Operator>(problem_, options_, memory, uneven_);
  }
  [[nodiscard]] std::string name() const override { return std::string(spec<Operator>.name); }
  [[nodiscard]] std::string summary() const override { return std::string(spec<Operator>.summary); }

 private:
  static constexpr bool has_uneven = requires { spec_of<Operator>::uneven; };

  template <class Visit>
  void for_each_offered(const Visit& visit) {
    for (const field& f : spec<Operator>.problem_fields)
      if (is_offered(spec<Operator>, f)) visit(f, static_cast<void*>(&problem_));
    for (const field& f : spec<Operator>.option_fields)
      if (is_offered(spec<Operator>, f)) visit(f, static_cast<void*>(&options_));
  }

  /// By default GPUs, if the operator has a kernel for the problem, elements have 16 bits and there
  /// is a GPU for each rank. With cuda the operator itself refuses problems that it cannot solve.
  [[nodiscard]] memory_kind memory_of(const run_place& place) const {
    const std::size_t choice = place_in("--backend", place.backend, {"auto", "host", "cuda"});
    if (choice == 1) return memory_kind::host;
    if (choice == 2) return memory_kind::cuda;
    if (problem_.type == dtype::f32 || !has_gpu_kernel<Operator>(problem_, options_))
      return memory_kind::host;
    return gpus_here() >= (place.ranks_given ? place.ranks : 2) ? memory_kind::cuda
                                                                : memory_kind::host;
  }

  static void refuse_elsewhere(const CLI::App& verb, const field& f, memory_kind memory) {
    const bool on_gpus = memory == memory_kind::cuda;
    if (f.place == field_place::anywhere || on_gpus == (f.place == field_place::gpus)) return;
    const std::string flag = flag_of(f);
    if (verb.count(flag) == 0) return;
    throw error(errc::invalid_argument,
                fmt::format("{} means nothing to {} {}: it is for {} only; leave it out, or choose "
                            "another --backend",
                            flag, spec<Operator>.name, on_gpus ? "on GPUs" : "on the host",
                            on_gpus ? "the host" : "GPUs"));
  }

  typename spec_of<Operator>::problem problem_ = spec_of<Operator>::example;
  typename spec_of<Operator>::options options_;
  bool uneven_ = false;
};

template <class Operator>
concept runs_by_itself = requires(const typename spec_of<Operator>::problem& problem,
                                  const typename spec_of<Operator>::options& options) {
  run_subject<Operator>(problem, options, memory_kind::host, false);
};

}  // namespace

std::vector<std::shared_ptr<run_operator>> run_operators() {
  std::vector<std::shared_ptr<run_operator>> list;
  library_operators::for_each([&]<class Operator>() {
    if constexpr (runs_by_itself<Operator>)
      list.push_back(std::make_shared<typed_operator<Operator>>());
  });
  return list;
}

}  // namespace untax::cli
