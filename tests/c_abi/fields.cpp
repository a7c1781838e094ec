// Every field that C callers set arrives: fields.def has them all.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "src/c/given.hpp"

namespace {

using namespace untax;

constexpr std::int64_t no_counts[4] = {};
constexpr std::int64_t other_counts[4] = {5, 6, 7, 8};
const untax_const_matrix read_matrices[] = {{nullptr, 10, 1, 0, untax_f32},
                                            {nullptr, 11, 1, 0, untax_f32},
                                            {nullptr, 12, 1, 0, untax_f32},
                                            {nullptr, 13, 1, 0, untax_f32}};
const untax_matrix written_matrices[] = {{nullptr, 20, 1, 0, untax_f32},
                                         {nullptr, 21, 1, 0, untax_f32}};
float floats[4];
const std::int32_t numbers[2] = {};

/// A structure with nothing in it but what has to be there.
template <class Structure>
Structure empty() {
  Structure s{};
  s.size = sizeof s;
  if constexpr (requires { s.counts; }) {
    s.counts = no_counts;
    s.counts_size = 1;
  }
  if constexpr (requires { s.query_begins; }) {
    s.q = s.keys = s.values = read_matrices;
    s.out = written_matrices;
  }
  if constexpr (requires { s.residual; }) s.in = s.residual = read_matrices;
  return s;
}

/// All that the arguments of a norm come to.
struct norm_operands {
  norm_inputs inputs;
  norm_results results;
};

/// The structure of the library that one of C comes to.
template <class Structure>
auto converted(const Structure& s) {
  if constexpr (requires { c::problem_of(&s); }) {
    return c::problem_of(&s);
  } else if constexpr (requires { c::options_of(&s); }) {
    return c::options_of(&s);
  } else if constexpr (requires { c::operands_of(&s); }) {
    return c::operands_of(&s);
  } else {
    return norm_operands{c::inputs_of(&s), c::results_of(&s)};
  }
}

/// The fields of one structure, with what it takes to set each of them and to see it arrive.
class structure_fields {
 public:
  structure_fields() = default;
  structure_fields(const structure_fields&) = delete;
  structure_fields& operator=(const structure_fields&) = delete;
  virtual ~structure_fields() = default;
  [[nodiscard]] virtual std::set<std::string> names() const = 0;
  /// Sets each field alone, and all of them.
  virtual void expect_arrivals() const = 0;
};

template <class Structure>
class fields_of final : public structure_fields {
 public:
  using result = decltype(converted(Structure{}));
  struct field {
    std::string name;
    void (*set)(Structure&);
    bool (*arrived)(const result&);
  };

  void add(field f) { fields_.push_back(std::move(f)); }
  [[nodiscard]] std::set<std::string> names() const override {
    std::set<std::string> all;
    for (const field& f : fields_) all.insert(f.name);
    return all;
  }
  void expect_arrivals() const override {
    Structure all = empty<Structure>();
    for (const field& f : fields_) f.set(all);
    const result of_all = converted(all);
    for (const field& set : fields_) {
      EXPECT_TRUE(set.arrived(of_all)) << set.name << ", with all others";
      Structure one = empty<Structure>();
      set.set(one);
      const result of_one = converted(one);
      for (const field& seen : fields_) {
        EXPECT_EQ(seen.arrived(of_one), &seen == &set)
            << seen.name << ", where only " << set.name << " is set";
      }
    }
  }

 private:
  std::vector<field> fields_;
};

using structures = std::map<std::string, std::unique_ptr<structure_fields>>;

template <class Structure>
void add(structures& all, const char* structure, typename fields_of<Structure>::field f) {
  auto& fields = all[structure];
  if (!fields) fields = std::make_unique<fields_of<Structure>>();
  static_cast<fields_of<Structure>&>(*fields).add(std::move(f));
}

structures listed() {
  structures all;
#define FIELD(structure, member, value, place, expected)           \
  add<structure>(all, #structure,                                  \
                 {#member, [](structure& s) { s.member = value; }, \
                  [](const fields_of<structure>::result& it) { return place == (expected); }});
#include "fields.def"
#undef FIELD
  return all;
}

/// The structures of the headers that callers fill in, with their fields but `size`.
std::map<std::string, std::set<std::string>> declared() {
  std::map<std::string, std::set<std::string>> all;
  const std::regex comment(R"(/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)");
  const std::regex structure(
      R"(typedef struct (untax_\w+_(?:problem|options|arguments)) \{([^}]*)\})");
  const std::regex member(R"((\w+)\s*;)");
  using matches = std::sregex_iterator;
  for (const auto& header : std::filesystem::directory_iterator("include/untax/c")) {
    std::stringstream read;
    read << std::ifstream(header.path()).rdbuf();
    const std::string text = std::regex_replace(read.str(), comment, "");
    for (matches found(text.begin(), text.end(), structure); found != matches(); ++found) {
      const std::string body = (*found)[2];
      std::set<std::string>& fields = all[(*found)[1]];
      for (matches at(body.begin(), body.end(), member); at != matches(); ++at)
        if ((*at)[1] != "size") fields.insert((*at)[1]);
    }
  }
  return all;
}

TEST(c_fields, are_all_listed) {
  std::map<std::string, std::set<std::string>> names;
  for (const auto& [structure, fields] : listed()) names[structure] = fields->names();
  EXPECT_EQ(names, declared());
}

TEST(c_fields, arrive) {
  for (const auto& [structure, fields] : listed()) {
    SCOPED_TRACE(structure);
    fields->expect_arrivals();
  }
}

TEST(c_fields, that_are_zero_stand_for_defaults) {
  const auto norm = converted(empty<untax_all_reduce_norm_problem>());
  EXPECT_EQ(norm.epsilon, all_reduce_norm_problem{}.epsilon);
  EXPECT_GT(norm.epsilon, 0);
  EXPECT_EQ(converted(empty<untax_norm_arguments>()).inputs.scale, 1);
  const world_options usual;
  const world_options made = converted(empty<untax_world_options>());
  EXPECT_EQ(made.heap_bytes, usual.heap_bytes);
  EXPECT_EQ(made.wait_limit, usual.wait_limit);
  EXPECT_EQ(made.join_limit, usual.join_limit);
  EXPECT_EQ(c::options_of(static_cast<const untax_operator_options*>(nullptr)).how,
            pattern::automatic);
}

}  // namespace
