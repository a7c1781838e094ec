// Every field that C callers set arrives: those of operators by the tables of fields, the others by
// fields.def.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <ostream>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/operators.hpp"
#include "src/c/given.hpp"
#include "src/c/structures.hpp"

namespace {

using namespace untax;

const untax_const_matrix read_matrices[] = {{nullptr, 10, 1, 0, untax_f32},
                                            {nullptr, 11, 1, 0, untax_f32},
                                            {nullptr, 12, 1, 0, untax_f32},
                                            {nullptr, 13, 1, 0, untax_f32}};
const untax_matrix written_matrices[] = {{nullptr, 20, 1, 0, untax_f32},
                                         {nullptr, 21, 1, 0, untax_f32},
                                         {nullptr, 22, 1, 0, untax_f32},
                                         {nullptr, 23, 1, 0, untax_f32}};
float floats[4];
const std::int32_t numbers[3] = {};

/// A structure with nothing in it but what has to be there.
template <class Structure>
Structure empty() {
  Structure s{};
  s.size = sizeof s;
  if constexpr (requires { s.query_begins; }) {
    s.q = s.keys = s.values = read_matrices;
    s.out = written_matrices;
  }
  if constexpr (requires { s.qkv; }) {
    s.qkv = read_matrices;
    s.keys = s.values = s.q = written_matrices;
  }
  if constexpr (requires { s.weights; }) {
    s.x = s.weights = read_matrices;
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
  if constexpr (requires { c::options_of(&s); }) {
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
    std::set<std::string> names;
    for (const field& f : fields_) names.insert(f.name);
    return names;
  }
  void expect_arrivals() const override {
    Structure full = empty<Structure>();
    for (const field& f : fields_) f.set(full);
    const result of_full = converted(full);
    for (const field& set : fields_) {
      EXPECT_TRUE(set.arrived(of_full)) << set.name << ", with all others";
      Structure alone = empty<Structure>();
      set.set(alone);
      const result of_alone = converted(alone);
      for (const field& seen : fields_) {
        EXPECT_EQ(seen.arrived(of_alone), &seen == &set)
            << seen.name << ", where only " << set.name << " is set";
      }
    }
  }

 private:
  std::vector<field> fields_;
};

using structures = std::map<std::string, std::unique_ptr<structure_fields>>;

template <class Structure>
void add(structures& list, const char* structure, typename fields_of<Structure>::field f) {
  auto& fields = list[structure];
  if (!fields) fields = std::make_unique<fields_of<Structure>>();
  static_cast<fields_of<Structure>&>(*fields).add(std::move(f));
}

structures listed() {
  structures list;
#define FIELD(structure, member, value, place, expected)           \
  add<structure>(list, #structure,                                 \
                 {#member, [](structure& s) { s.member = value; }, \
                  [](const fields_of<structure>::result& it) { return place == (expected); }});
#include "fields.def"
#undef FIELD
  return list;
}

/// A member of a structure as its header declares it.
struct declared_member {
  std::string type;
  std::string name;
  bool operator==(const declared_member&) const = default;
};

std::ostream& operator<<(std::ostream& out, const declared_member& m) {
  return out << m.type << ' ' << m.name;
}

/// The structures of the headers that callers fill in, with their members behind `size`.
std::map<std::string, std::vector<declared_member>> declared() {
  std::map<std::string, std::vector<declared_member>> declarations;
  const std::regex comment(R"(/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)");
  const std::regex structure(
      R"(typedef struct (untax_\w+_(?:problem|options|arguments)) \{([^}]*)\})");
  const std::regex member(R"((?:const\s+)?(\w+)(\s*\*)?\s+(\w+)\s*;)");
  using matches = std::sregex_iterator;
  for (const auto& header : std::filesystem::directory_iterator("include/untax/c")) {
    std::stringstream read;
    read << std::ifstream(header.path()).rdbuf();
    const std::string text = std::regex_replace(read.str(), comment, "");
    for (matches place(text.begin(), text.end(), structure); place != matches(); ++place) {
      const std::string body = (*place)[2];
      auto& members = declarations[(*place)[1]];
      for (matches at(body.begin(), body.end(), member); at != matches(); ++at) {
        if ((*at)[3] != "size")
          members.push_back({std::string((*at)[1]) + ((*at)[2].matched ? "*" : ""), (*at)[3]});
      }
    }
  }
  return declarations;
}

/// The members that a table of fields stands for.
std::vector<declared_member> members_of(std::span<const field> table) {
  std::vector<declared_member> members;
  for (const field& f : table) {
    const std::string name(f.name);
    if (f.kind == field_kind::integers) {
      members.push_back({"int32_t", name + "_size"});
      members.push_back({"int64_t*", name});
    } else if (f.kind == field_kind::real) {
      members.push_back({f.bytes == sizeof(double) ? "double" : "float", name});
    } else {
      members.push_back({f.bytes == sizeof(std::int64_t) ? "int64_t" : "int32_t", name});
    }
  }
  return members;
}

/// The structure of an operator's options, which several operators share.
std::string options_name(const operator_spec& operation) {
  for (const auto& [options, table] :
       {std::pair{"untax_operator_options", std::span<const field>(operator_option_fields)},
        std::pair{"untax_collective_options", std::span<const field>(collective_option_fields)}}) {
    if (operation.option_fields.data() == table.data()) return options;
  }
  return "untax_" + std::string(operation.name) + "_options";
}

constexpr std::int64_t counts[] = {5, 6, 7, 8};

/// Values of a field that differ from 0.
std::vector<field_value> values_of(const field& f) {
  std::vector<field_value> values;
  switch (f.kind) {
    case field_kind::integer:
      return {{.integer = 21}, {.integer = f.bytes == 8 ? std::int64_t{1} << 40 : 1 << 30}};
    case field_kind::flag:
      return {{.integer = 1}};
    case field_kind::choice:
      for (const field_word& word : f.words)
        if (word.number != 0) values.push_back({.integer = word.number});
      return values;
    case field_kind::real:
      return {{.real = 0.25}};
    case field_kind::integers:
      return {{.integers = counts}};
  }
  return values;
}

void write_field(const field& f, const field_value& value, std::byte* at) {
  const auto write = [at](const auto& number) { std::memcpy(at, &number, sizeof number); };
  if (f.kind == field_kind::integers) {
    write(static_cast<std::int32_t>(value.integers.size()));
    const std::int64_t* const array = value.integers.data();
    std::memcpy(at + sizeof(void*) - reinterpret_cast<std::uintptr_t>(at) % sizeof(void*), &array,
                sizeof array);
  } else if (f.kind == field_kind::real) {
    f.bytes == sizeof(double) ? write(value.real) : write(static_cast<float>(value.real));
  } else if (f.bytes == sizeof(std::int64_t)) {
    write(value.integer);
  } else {
    write(static_cast<std::int32_t>(value.integer));
  }
}

bool same(const field_value& a, const field_value& b) {
  return a.integer == b.integer && a.real == b.real && std::ranges::equal(a.integers, b.integers);
}

/// Sets each field alone in a structure of the C ABI, and expects it, and no other, in an object of
/// the library.
template <class Object>
void expect_arrivals(std::span<const field> table) {
  const std::size_t bytes = c::bytes_of_structure(table);
  std::vector<std::uint64_t> zero(bytes / sizeof(std::uint64_t));
  Object empty_object;
  c::store_fields(table, zero.data(), &empty_object);
  c::lay_out(table, [&](const field& set, std::size_t offset) {
    for (const field_value& value : values_of(set)) {
      std::vector<std::uint64_t> structure = zero;
      write_field(set, value, reinterpret_cast<std::byte*>(structure.data()) + offset);
      Object object;
      c::store_fields(table, structure.data(), &object);
      for (const field& seen : table) {
        EXPECT_TRUE(same(seen.load(&object), &seen == &set ? value : seen.load(&empty_object)))
            << seen.name << ", where only " << set.name << " is set";
      }
    }
  });
}

TEST(c_fields, of_operators_equal_their_specs) {
  const auto declarations = declared();
  for (const operator_spec& operation : operator_specs()) {
    const std::string problem = "untax_" + std::string(operation.name) + "_problem";
    EXPECT_EQ(declarations.at(problem), members_of(operation.problem_fields)) << problem;
    const std::string options = options_name(operation);
    EXPECT_EQ(declarations.at(options), members_of(operation.option_fields)) << options;
  }
}

// A table could name one member and store another.
TEST(c_fields, of_operators_are_named_as_their_members) {
  const std::set<std::pair<std::string_view, std::string_view>> renamed = {
      {"pattern", "how"}, {"reduction", "how"},   {"eager", "launch"},
      {"pull", "move"},   {"gather_k", "gather"}, {"own_heads", "get"}};
  for (const operator_spec& operation : operator_specs()) {
    for (const auto table : {operation.problem_fields, operation.option_fields}) {
      for (const field& f : table) {
        EXPECT_TRUE(f.name == f.member || renamed.contains({f.name, f.member}))
            << operation.name << ": " << f.name << " is stored in " << f.member;
      }
    }
  }
}

TEST(c_fields, flags_of_enumerations_match_their_names) {
  untax_operator_options given{};
  given.pull = 1;
  given.eager = 1;
  operator_options options;
  EXPECT_EQ(options.launch, launch_mode::graph);
  c::store_fields(operator_option_fields, &given, &options);
  EXPECT_EQ(options.launch, launch_mode::eager);
  EXPECT_EQ(options.move, direction::pull);
  all_gather_gemm_problem gather;
  untax_all_gather_gemm_problem by_k{};
  by_k.gather_k = 1;
  c::store_fields(spec<all_gather_gemm>.problem_fields, &by_k, &gather);
  EXPECT_EQ(gather.gather, gather_axis::k);
  merge_partial_attention_problem merge;
  untax_merge_partial_attention_problem own{};
  own.own_heads = 1;
  c::store_fields(spec<merge_partial_attention>.problem_fields, &own, &merge);
  EXPECT_EQ(merge.get, merged_heads::own);
  gemm_all_reduce_problem sum;
  untax_gemm_all_reduce_problem wide{};
  wide.partials = untax_partials_f32;
  c::store_fields(spec<gemm_all_reduce>.problem_fields, &wide, &sum);
  EXPECT_EQ(sum.partials, dtype::f32);
}

TEST(c_fields, of_operators_reach_the_problem) {
  library_operators::for_each([]<class Operator>() {
    using spec_type = spec_of<Operator>;
    SCOPED_TRACE(spec_type::name);
    expect_arrivals<typename spec_type::problem>(spec_type::problem_fields);
    expect_arrivals<typename spec_type::options>(spec_type::option_fields);
  });
}

TEST(c_fields, of_operators_are_described_by_the_abi) {
  for (const operator_spec& operation : operator_specs()) {
    std::vector<std::string> names;
    untax_field f{};
    f.size = sizeof f;
    const std::string name(operation.name);
    for (int i = 0; untax_operator_field(name.c_str(), i, &f) == untax_ok; ++i) {
      names.emplace_back(f.name);
      EXPECT_NE(std::string(f.help), "") << name << ", " << f.name;
      EXPECT_EQ(std::string(f.words).empty(), f.kind != untax_field_choice && f.words[0] == 0);
    }
    std::vector<std::string> fields;
    for (const auto table : {operation.problem_fields, operation.option_fields})
      for (const field& described : table) fields.emplace_back(described.name);
    EXPECT_EQ(names, fields) << name;
  }
}

TEST(c_fields, of_worlds_and_runs_are_all_listed) {
  const auto declarations = declared();
  for (const auto& [structure, fields] : listed()) {
    std::set<std::string> names;
    for (const declared_member& m : declarations.at(structure)) names.insert(m.name);
    EXPECT_EQ(fields->names(), names) << structure;
  }
  std::size_t operators = declarations.size() - listed().size();
  std::set<std::string> described;
  for (const operator_spec& operation : operator_specs()) {
    described.insert(options_name(operation));
    described.insert("untax_" + std::string(operation.name) + "_problem");
  }
  EXPECT_EQ(described.size(), operators) << "a structure is in no table";
}

TEST(c_fields, of_all_structures_reach_the_library) {
  for (const auto& [structure, fields] : listed()) {
    SCOPED_TRACE(structure);
    fields->expect_arrivals();
  }
}

TEST(c_fields, of_zero_stand_for_defaults) {
  all_reduce_norm_problem norm{.epsilon = 7};
  const untax_all_reduce_norm_problem zero{};
  c::store_fields(spec<all_reduce_norm>.problem_fields, &zero, &norm);
  EXPECT_EQ(norm.epsilon, all_reduce_norm_problem{}.epsilon);
  EXPECT_GT(norm.epsilon, 0);
  EXPECT_EQ(converted(empty<untax_norm_arguments>()).inputs.scale, 1);
  const world_options usual;
  const world_options zeros = converted(empty<untax_world_options>());
  EXPECT_EQ(zeros.heap_bytes, usual.heap_bytes);
  EXPECT_EQ(zeros.wait_limit, usual.wait_limit);
  EXPECT_EQ(zeros.join_limit, usual.join_limit);
}

}  // namespace
