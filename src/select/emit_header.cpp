#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/select/emit.hpp>

#include "src/select/double_literal.hpp"
#include "src/select/named_trees.hpp"

namespace untax::select {
namespace {

void write_table(const named_tree& t, std::string& text) {
  text += fmt::format("inline constexpr node {}_tree[] = {{\n", t.name);
  for (const decision_tree::node& n : t.tree->nodes()) {
    text += fmt::format("    {{{}, {}, {}, {}, {}}},\n", n.feature, double_literal(n.threshold),
                        n.low, n.high, n.choice);
  }
  text += "};\n\n";
}

void write_branch(const named_tree& t, int at, int depth, const std::string& kind,
                  std::string& text) {
  const decision_tree::node& n = t.tree->nodes()[static_cast<std::size_t>(at)];
  const std::string space(static_cast<std::size_t>(2 * depth + 2), ' ');
  if (n.feature < 0) {
    const std::string& choice = t.choices[static_cast<std::size_t>(n.choice)];
    const std::string value =
        kind == "bool" ? (choice == "yes" ? "true" : "false")
                       : fmt::format("candidate::{}", identifier_of({choice, "", "", "", ""}));
    text += fmt::format("{}return {};\n", space, value);
    return;
  }
  text += fmt::format("{}if ({} <= {}) {{\n", space,
                      t.features[static_cast<std::size_t>(n.feature)], double_literal(n.threshold));
  write_branch(t, n.low, depth + 1, kind, text);
  text += space + "}\n";
  write_branch(t, n.high, depth, kind, text);
}

class header_writer {
 public:
  header_writer(const selector& s, std::string_view space)
      : s_(s), space_(space), names_(feature_names(s.what())) {}

  std::string write() {
    const schema& what = s_.what();
    text_ = fmt::format(
        "// A selector, made by `untax select emit`{}. Do not edit.\n// clang-format off\n#pragma "
        "once\n\n"
        "#include <algorithm>\n#include <cmath>\n\nnamespace {} {{\n\n",
        what.title.empty() ? "" : " for " + one_line(what.title), space_);
    text_ += "enum class candidate : int {";
    for (std::size_t i = 0; i < what.candidates.size(); ++i)
      text_ += fmt::format("{}{}", i == 0 ? " " : ", ", identifier_of(what.candidates[i]));
    text_ += " };\ninline constexpr const char* candidate_names[] = {";
    for (std::size_t i = 0; i < what.candidates.size(); ++i)
      text_ += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", what.candidates[i].name);
    text_ += "};\n\n";
    write_struct("known_features", "The known features of an input.", false);
    if (s_.features().given() > s_.features().given_known())
      write_struct("gathered_features", "The features that take a pass over the input.", true);
    text_ +=
        "// A tree as a table: feature -1 is a leaf; at most `threshold` goes to `low`. Features "
        "are numbered in the\n// order of the structs and of what is computed behind them; the "
        "last is the number of iterations.\n"
        "struct node {\n  int feature;\n  double threshold;\n  int low, high, choice;\n};\n";
    for (const named_tree& t : trees_of(s_)) write_table(t, text_);
    for (const named_tree& t : trees_of(s_)) write_functions(t);
    text_ += fmt::format("}}  // namespace {}\n", space_);
    return std::move(text_);
  }

 private:
  static std::string one_line(std::string title) {
    std::ranges::replace_if(
        title, [](unsigned char c) { return std::iscntrl(c) != 0 || c == '\\'; }, ' ');
    return title;
  }
  void write_struct(const char* name, const char* what, bool gathered) {
    text_ += fmt::format("// {}\nstruct {} {{\n", what, name);
    for (const feature& f : s_.what().features) {
      if (f.given && f.gathered == gathered) text_ += fmt::format("  double {};\n", f.name);
    }
    text_ += "};\n\n";
  }
  /// Declares a variable for each feature: a given one from its struct, others by expressions.
  void write_features(bool gathered) {
    for (const feature& f : s_.what().features) {
      if (f.gathered && !gathered) continue;
      const std::string value =
          f.given ? fmt::format("{}.{}", f.gathered ? "gathered" : "known", f.name)
                  : expression::parse(f.is, names_).cpp(names_);
      text_ += fmt::format("  [[maybe_unused]] const double {} = {};\n", f.name, value);
    }
  }
  void write_functions(const named_tree& t) {
    const bool gathered = t.name == "gathered";
    if (gathered && s_.features().given() == s_.features().given_known()) return;
    const std::string arguments =
        fmt::format("const known_features& known, {}[[maybe_unused]] double iterations",
                    gathered ? "const gathered_features& gathered, " : "");
    if (t.name == "gather") {
      text_ += fmt::format("// {}\ninline bool gathering_pays({}) {{\n", t.question, arguments);
      write_features(false);
      write_branch(t, 0, 0, "bool", text_);
      text_ += "}\n\n";
      return;
    }
    text_ += fmt::format("// {} Without guards.\ninline candidate by_{}_tree({}) {{\n", t.question,
                         t.name, arguments);
    write_features(gathered);
    write_branch(t, 0, 0, "candidate", text_);
    text_ += "}\n\n";
    text_ += fmt::format("// {}\ninline candidate choose({}) {{\n", t.question, arguments);
    write_features(gathered);
    text_ += fmt::format("  const candidate chosen = by_{}_tree(known, {}iterations);\n", t.name,
                         gathered ? "gathered, " : "");
    const schema& what = s_.what();
    const std::string fallback =
        identifier_of(what.candidates[static_cast<std::size_t>(s_.fallback())]);
    for (std::size_t c = 0; c < what.candidates.size(); ++c) {
      const candidate& entry = what.candidates[c];
      if (entry.guard.empty()) continue;
      // Without gathered features, the known guard replaces one that uses them; none refuses.
      const bool answered = gathered || s_.features().is_guarded_by_known(c);
      const std::string& guard = answered ? entry.guard : entry.known_guard;
      const std::string holds =
          guard.empty() ? std::string("false") : expression::parse(guard, names_).cpp(names_);
      text_ += fmt::format("  if (chosen == candidate::{} && !{}) return candidate::{};\n",
                           identifier_of(entry), holds, fallback);
    }
    text_ += "  return chosen;\n}\n\n";
  }

  const selector& s_;
  std::string_view space_;
  std::vector<std::string> names_;
  std::string text_;
};

}  // namespace

std::string to_header(const selector& s, std::string_view space) {
  const bool usable =
      !space.empty() && std::isdigit(static_cast<unsigned char>(space[0])) == 0 &&
      std::ranges::all_of(space, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (!usable) {
    throw error(errc::invalid_argument,
                fmt::format("the namespace \"{}\" has to be letters, digits and _", space));
  }
  return header_writer(s, space).write();
}

}  // namespace untax::select
