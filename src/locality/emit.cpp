#include <untax/locality/emit.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::locality {
namespace {

std::string in_cpp(const listed_order& /*order*/) { return "listed"; }
std::string in_cpp(const order::chunked_remap& r) {
  return fmt::format("chunked_remap{{{}, {}, {}}}", r.blocks, r.domains, r.chunk);
}
std::string in_cpp(const remap_of_rows& r) {
  return fmt::format("repeated{{{}, {}}}", r.times, in_cpp(r.part));
}
std::string in_cpp(const axes_in_order& a) {
  return fmt::format("axis_order<6>{{{{{}}}, {{{}}}}}", fmt::join(a.extent, ", "),
                     fmt::join(a.slowest_first, ", "));
}
std::string in_cpp(const last_first_along& a) {
  return fmt::format("along_axis{{{}, {}, last_first{{{}}}}}", a.outer, a.inner, a.along.blocks);
}
std::string way_in_cpp(const order::banded& w) {
  return fmt::format("banded{{{}, {}, {}, {}}}", w.x_tiles, w.y_tiles, w.band, w.segments);
}
std::string way_in_cpp(const order::snake& w) {
  return fmt::format("snake{{{}, {}, {}}}", w.x_tiles, w.y_tiles, w.band);
}
template <class Way>
std::string way_in_cpp(const order::transposed<Way>& w) {
  return fmt::format("transposed{{{}}}", way_in_cpp(w.way));
}
template <bool IsHilbert>
std::string way_in_cpp(const order::curve<IsHilbert>& w) {
  return fmt::format("{}{{{}, {}}}", IsHilbert ? "hilbert" : "morton", w.x_tiles, w.y_tiles);
}
std::string way_in_cpp(const order::diagonals& w) {
  return fmt::format("diagonals{{{}, {}}}", w.x_tiles, w.y_tiles);
}
std::string way_in_cpp(const order::rectangles& w) {
  return fmt::format("rectangles{{{}, {}, {}, {}, {}}}", w.x_tiles, w.y_tiles, w.across, w.down,
                     w.band);
}
template <class Way>
std::string in_cpp(const plane<Way>& p) {
  return fmt::format("repeated{{{}, through{{{}}}}}", p.times, way_in_cpp(p.part.way));
}

/// The name of the length of an axis in emitted code.
std::string length_of(const axis& a) { return a.name + "_blocks"; }

/// Generates statements in C or in Python, which differ only in syntax. Lengths of axes have names.
class statements {
 public:
  statements(const kernel& k, bool is_python) : is_python_(is_python) {
    std::string product;
    for (const axis& a : k.axes()) {
      lengths_.push_back(length_of(a));
      extents_.push_back(a.extent);
      product += (product.empty() ? "" : " * ") + length_of(a);
    }
    set("blocks", product);
    declared_.insert("p");
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether a part of the order is not generated as arithmetic, so that it needs a table.
  [[nodiscard]] bool needs_table() const { return needs_table_; }
  /// Sizes of the kernel that the statements name, with their values.
  [[nodiscard]] const std::vector<std::pair<std::string, std::int64_t>>& sizes() const {
    return sizes_;
  }

  void operator()(const listed_order& order) {
    if (order.formula == nullptr || !order.formula->is_natural) {
      needs_table_ = true;
      return;
    }
    formula(*order.formula);
  }
  void operator()(const order::chunked_remap& r) { remap(r, "blocks", "p"); }
  void operator()(const remap_of_rows& r) {
    // A row has a block for each pair of places on the two axes of heads.
    set("row_blocks", lengths_[1] + " * " + lengths_[2]);
    set("base", fmt::format("p - {}", divided("p", "row_blocks", true)));
    set("p", "p - base");
    remap(r.part, "row_blocks", "p");
    set("p", "base + p");
  }
  void operator()(const axes_in_order& a) {
    set("left", "p");
    const int padding = 6 - static_cast<int>(lengths_.size());
    std::string stride[6];
    for (int i = 5; i >= padding; --i) {
      const auto axis = static_cast<std::size_t>(i - padding);
      stride[i] =
          i == 5 ? "" : lengths_[axis + 1] + (stride[i + 1].empty() ? "" : " * ") + stride[i + 1];
    }
    std::string sum;
    for (int i = 5; i >= 0; --i) {
      const int axis = a.slowest_first[i];
      if (axis < padding || a.extent[axis] == 1) continue;
      const std::string name = fmt::format("place{}", axis);
      const std::string& length = lengths_[static_cast<std::size_t>(axis - padding)];
      set(name, divided("left", length, true));
      set("left", divided("left", length, false));
      sum += (sum.empty() ? "" : " + ") + name + (stride[axis].empty() ? "" : " * ") + stride[axis];
    }
    set("p", sum.empty() ? "p" : sum);
  }
  void operator()(const last_first_along& a) {
    const std::string length =
        a.along.blocks == extents_.back() ? lengths_.back() : number(a.along.blocks);
    set("place", divided(divided("p", number(a.inner), false), length, true));
    set("p", fmt::format("p + ({} - 1 - 2 * place) * {}", length, a.inner));
  }
  template <class Way>
  void operator()(const plane<Way>& p) {
    wide_axes();
    if (p.times > 1) {
      set("base", fmt::format("p - {}", divided("p", fmt::format("({} * {})", x_, y_), true)));
      set("p", "p - base");
    }
    inner(p.part.way);
    if (p.times > 1) set("p", "base + p");
  }

 private:
  /// Finds the two axes that change first and have more than one place.
  void wide_axes() {
    std::vector<std::string> wide;
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      if (extents_[i] > 1) wide.push_back(lengths_[i]);
    }
    x_ = wide.back();
    y_ = wide[wide.size() - 2];
  }
  void remap(const order::chunked_remap& r, const std::string& blocks, const std::string& p) {
    const bool is_full = r.chunk > r.blocks / r.domains;
    const std::string domains = number(r.domains);
    if (is_full) {
      set("height", divided(blocks, domains, false));
      set("tall", divided(blocks, domains, true));
      set("domain", divided(p, domains, true));
      set(p, fmt::format("domain * height + {} + {}", where("domain < tall", "domain", "tall"),
                         divided(p, domains, false)));
      return;
    }
    const std::string group = number(r.domains * r.chunk);
    set("whole", fmt::format("{} * {}", divided(blocks, group, false), group));
    set("height", divided(fmt::format("({} - whole)", blocks), domains, false));
    set("tall", divided(fmt::format("({} - whole)", blocks), domains, true));
    set("beyond", where(p + " < whole", "0", p + " - whole"));
    set("domain", divided("beyond", domains, true));
    set("rest",
        fmt::format("whole + domain * height + {} + {}", where("domain < tall", "domain", "tall"),
                    divided("beyond", domains, false)));
    set("within", divided(p, group, true));
    set("grouped", fmt::format("{} - within + {} * {} + {}", p, divided("within", domains, true),
                               r.chunk, divided("within", domains, false)));
    set(p, where(p + " < whole", "grouped", "rest"));
  }
  void inner(const order::banded& w) {
    in_bands(x_, y_, w.band);
    set("p", fmt::format("y * {} + x", x_));
  }
  void inner(const order::snake& w) {
    in_bands(x_, y_, w.band);
    turn(w.band, y_);
    set("p", fmt::format("y * {} + x", x_));
  }
  void inner(const order::transposed<order::banded>& w) {
    in_bands(y_, x_, w.way.band);
    set("p", fmt::format("x * {} + y", x_));
  }
  void inner(const order::transposed<order::snake>& w) {
    in_bands(y_, x_, w.way.band);
    turn(w.way.band, x_);
    set("p", fmt::format("x * {} + y", x_));
  }
  void inner(const order::rectangles& w) {
    set("row", "0");
    for (int j = 1; j < w.down; ++j) {
      const std::string end =
          divided(fmt::format("({} * {})", y_, j), number(w.down), false) + " * " + x_;
      set("row", "row + " + where(fmt::format("p >= {}", end), "1", "0"));
    }
    set("top", divided(fmt::format("(row * {})", y_), number(w.down), false));
    set("height", divided(fmt::format("((row + 1) * {})", y_), number(w.down), false) + " - top");
    set("p", fmt::format("p - top * {}", x_));
    set("column", "0");
    for (int i = 1; i < w.across; ++i) {
      const std::string end = divided(fmt::format("({} * {})", x_, i), number(w.across), false);
      set("column", "column + " + where(fmt::format("p >= {} * height", end), "1", "0"));
    }
    set("left", divided(fmt::format("(column * {})", x_), number(w.across), false));
    set("width",
        divided(fmt::format("((column + 1) * {})", x_), number(w.across), false) + " - left");
    set("p", "p - left * height");
    in_bands("width", "height", w.band);
    set("p", fmt::format("(top + y) * {} + left + x", x_));
  }
  template <bool IsHilbert>
  void inner(const order::curve<IsHilbert>& /*way*/) {
    needs_table_ = true;
  }
  void inner(const order::diagonals& /*way*/) { needs_table_ = true; }

  /// Computes `x` and `y` of position `p`, in bands of `band` columns.
  void in_bands(const std::string& width, const std::string& height, int band) {
    set("first",
        divided("p", fmt::format("({} * {})", band, height), false) + fmt::format(" * {}", band));
    set("in_band", fmt::format("p - first * {}", height));
    set("of_band", where(fmt::format("{} - first < {}", width, band),
                         fmt::format("{} - first", width), number(band)));
    set("y", divided("in_band", "of_band", false));
    set("x", "first + in_band - y * of_band");
  }
  void turn(int band, const std::string& height) {
    const std::string odd = divided(divided("x", number(band), false), "2", true);
    set("y", where(odd + " == 0", "y", fmt::format("{} - 1 - y", height)));
  }

  /// The statements of a formula. Names of its own get a suffix, so that none is a keyword.
  void formula(const formula_program& f) {
    // The places of block p on the axes.
    set("left", "p");
    for (std::size_t i = lengths_.size(); i-- > 0;) {
      const std::string axis =
          lengths_[i].substr(0, lengths_[i].size() - std::string("_blocks").size());
      set(axis + "_", divided("left", lengths_[i], true));
      set("left", divided("left", lengths_[i], false));
    }
    set("p_", "p");
    for (const auto& statement : f.statements)
      set(name_in(f, statement.target), expression(f, statement));
    set("p", name_in(f, f.result));
  }
  std::string name_in(const formula_program& f, int index) {
    const auto at = static_cast<std::size_t>(index);
    const std::string& name = f.names[at];
    const bool is_length = std::ranges::find(lengths_, name) != lengths_.end();
    if (is_length || name == "blocks") return name;
    if (name == "(result)") return "result_";
    const bool is_axis = std::ranges::find(lengths_, name + "_blocks") != lengths_.end();
    if (index < f.given && name != "p" && !is_axis) {
      // A size, or the number of domains: an argument.
      const auto known = std::ranges::find(sizes_, name, [](const auto& s) { return s.first; });
      if (known == sizes_.end()) sizes_.emplace_back(name, f.values[at]);
      return name;
    }
    return name + "_";
  }
  std::string expression(const formula_program& f, const formula_program::statement& s) {
    using operation = formula_program::operation;
    static const std::map<operation, const char*> signs = {
        {operation::add, "+"},       {operation::subtract, "-"},  {operation::multiply, "*"},
        {operation::remainder, "%"}, {operation::left, "<<"},     {operation::right, ">>"},
        {operation::both, "&"},      {operation::differing, "^"}, {operation::either, "|"},
        {operation::below, "<"},     {operation::at_most, "<="},  {operation::above, ">"},
        {operation::at_least, ">="}, {operation::equal, "=="},    {operation::unequal, "!="}};
    std::vector<std::string> stack;
    const auto take = [&] {
      std::string last = std::move(stack.back());
      stack.pop_back();
      return last;
    };
    for (const formula_program::instruction& next : s.code) {
      if (next.what == operation::number) {
        stack.push_back(fmt::format("{}", next.value));
      } else if (next.what == operation::name) {
        stack.push_back(name_in(f, static_cast<int>(next.value)));
      } else if (next.what == operation::negate || next.what == operation::invert) {
        stack.back() =
            fmt::format("({}{})", next.what == operation::negate ? "-" : "~", stack.back());
      } else if (next.what == operation::choice) {
        const std::string no = take();
        const std::string yes = take();
        stack.back() = where(stack.back() + " != 0", yes, no);
      } else {
        const std::string b = take();
        const std::string a = take();
        if (next.what == operation::least || next.what == operation::greatest) {
          stack.push_back(where(
              fmt::format("{} {} {}", a, next.what == operation::least ? "<" : ">", b), a, b));
        } else if (next.what == operation::divide) {
          stack.push_back(divided(a, b, false));
        } else {
          const bool compares = next.what >= operation::below && next.what <= operation::unequal;
          const std::string value = fmt::format("({} {} {})", a, signs.at(next.what), b);
          stack.push_back(compares ? where(value, "1", "0") : value);
        }
      }
    }
    return stack.back();
  }

  void set(const std::string& name, const std::string& value) {
    const bool is_new = !is_python_ && name != "p" && declared_.insert(name).second;
    text_ += fmt::format("{}{}{} = {}{}\n", is_python_ ? "    " : "  ", is_new ? "int " : "", name,
                         value, is_python_ ? "" : ";");
  }
  [[nodiscard]] static std::string number(int value) { return fmt::format("{}", value); }
  [[nodiscard]] std::string divided(const std::string& what, const std::string& divisor,
                                    bool is_rest) const {
    const char* sign = is_rest ? "%" : is_python_ ? "//" : "/";
    return fmt::format("({} {} {})", what, sign, divisor);
  }
  [[nodiscard]] std::string where(const std::string& condition, const std::string& yes,
                                  const std::string& no) const {
    return is_python_ ? fmt::format("tl.where({}, {}, {})", condition, yes, no)
                      : fmt::format("({} ? {} : {})", condition, yes, no);
  }

  bool is_python_;
  bool needs_table_ = false;
  std::string text_;
  std::string x_;  // the length of the axis that changes first
  std::string y_;
  std::vector<std::string> lengths_;
  std::vector<int> extents_;
  std::vector<std::pair<std::string, std::int64_t>> sizes_;
  std::set<std::string> declared_;
};

statements statements_of(const block_order& order, const kernel& k, bool is_python) {
  statements made(k, is_python);
  for (const order_part& part : order.parts) std::visit(made, part);
  return made;
}

std::string steps_of(const block_order& order) {
  if (order.way == order::direction::forward) return {};
  return fmt::format("; steps {}", name_of(order.way));
}

/// The functions that return the next step, in C or in Python; none for the usual order.
std::string step_functions(order::direction way, bool is_python) {
  const auto function = [&](const char* about, const char* name, const char* arguments,
                            const std::string& value) {
    if (is_python)
      return fmt::format("\n\n# {}\n@triton.jit\ndef {}({}):\n    return {}\n", about, name,
                         arguments, value);
    std::string typed;
    for (const char c : std::string(arguments))
      typed += c == ',' ? std::string(", int") : std::string(1, c);
    return fmt::format("\n/// {}\nUNTAX_ORDER_CODE inline int {}(int {}) {{ return {}; }}\n", about,
                       name, typed, value);
  };
  const auto where = [&](const char* condition, const char* yes, const char* no) {
    return is_python ? fmt::format("tl.where({}, {}, {})", condition, yes, no)
                     : fmt::format("{} ? {} : {}", condition, yes, no);
  };
  switch (way) {
    case order::direction::forward:
      return {};
    case order::direction::backward:
      return function("The step that is done as number i.", "step_of", "i, steps", "steps - 1 - i");
    case order::direction::sawtooth:
      return function(
          "The step that is done as number i by a block before which its processor did `turn` "
          "others.",
          "step_of", "i, steps, turn", where("turn % 2 == 0", "i", "steps - 1 - i"));
    case order::direction::staggered:
      return function("The step that is done as number i; `turn` is the number of the block.",
                      "step_of", "i, steps, turn", "(i + turn) % steps");
    case order::direction::joined:
      // The word belongs to the kernel: its place depends on the kernel's operands.
      return function(
                 "Where a block begins: `latest` is a word for each domain and stream, 0 at first, "
                 "of the steps.",
                 "first_step", "latest, steps", where("latest < steps", "latest", "0")) +
             function("The step that is done as number i.", "step_of", "i, steps, first",
                      "(i + first) % steps");
  }
  return {};
}

constexpr int most_table = 1 << 20;  // blocks of an order that is written as a table

void require_table_that_fits(const block_order& order, const kernel& k) {
  if (k.blocks() <= most_table) return;
  throw error(
      errc::invalid_argument,
      fmt::format("{} is written as a table, and {} blocks are more than the {} that one may have",
                  order.name, k.blocks(), most_table));
}

/// The lengths of axes and the sizes that the order depends on, as arguments with the current
/// values.
std::string arguments_of(const statements& statements_of_order, const kernel& k, bool is_python) {
  std::string text;
  const auto add = [&](const std::string& name, std::int64_t value) {
    text +=
        is_python ? fmt::format(", {}={}", name, value) : fmt::format(", int {} = {}", name, value);
  };
  for (const axis& a : k.axes()) add(length_of(a), a.extent);
  for (const auto& [name, value] : statements_of_order.sizes()) add(name, value);
  return text;
}

/// The relation between the number of a block and its place on the axes.
std::string about_numbers(const kernel& k) {
  std::string text;
  for (const axis& a : k.axes())
    text = text.empty() ? a.name : fmt::format("({}) * {} + {}", text, length_of(a), a.name);
  return text;
}

/// The numbers of a table in lines.
std::string listed(const block_order& order, int blocks) {
  std::string text;
  for (int p = 0; p < blocks; ++p)
    text += fmt::format("{}{}", p == 0 ? "" : p % 16 == 0 ? ",\n    " : ", ", order.block(p));
  return text;
}

}  // namespace

std::string to_cpp(const block_order& order, const kernel& k) {
  for (const order_part& part : order.parts) {
    if (std::holds_alternative<listed_order>(part))
      return "// Needs no header.\n" + to_hip(order, k);
  }
  std::string value;
  for (std::size_t i = order.parts.size(); i-- > 0;) {
    const std::string part = std::visit([](const auto& p) { return in_cpp(p); }, order.parts[i]);
    value = value.empty() ? part : fmt::format("composed{{{},\n    {}}}", part, value);
  }
  if (value.empty()) value = fmt::format("as_numbered{{{}}}", k.blocks());
  return fmt::format(
      "#pragma once\n\n#include <untax/order/axes.hpp>\n#include <untax/order/curves.hpp>\n"
      "#include <untax/order/order.hpp>\n#include <untax/order/raster.hpp>\n"
      "#include <untax/order/rectangles.hpp>\n#include <untax/order/remap.hpp>\n"
      "#include <untax/order/steps.hpp>\n\n"
      "/// {}{}. The block that is started as number p does block_of(p), of {}.\n"
      "UNTAX_HOST_DEVICE constexpr int block_of(int p) {{\n  using namespace untax::order;\n"
      "  return {}.block(p);\n}}\n{}",
      order.name, steps_of(order), k.blocks(), value,
      order.way == order::direction::forward
          ? ""
          : fmt::format(
                "\n/// How a block goes through its steps.\nUNTAX_HOST_DEVICE constexpr "
                "untax::order::step_order steps_of(int steps, int turn) {{\n  return {{steps, "
                "untax::order::direction::{}, turn}};\n}}\n",
                name_of(order.way)));
}

std::string to_hip(const block_order& order, const kernel& k) {
  const statements result = statements_of(order, k, false);
  std::string text = fmt::format(
      "// For HIP, CUDA and C++. {}{}.\n#pragma once\n\n#if defined(__CUDACC__) || "
      "defined(__HIPCC__)\n"
      "#define UNTAX_ORDER_CODE __host__ __device__\n#else\n#define UNTAX_ORDER_CODE\n#endif\n\n",
      order.name, steps_of(order));
  if (result.needs_table()) {
    require_table_that_fits(order, k);
    text += fmt::format(
        "/// The block that is started as number p does block_of(p), of {}: {}.\n"
        "UNTAX_ORDER_CODE inline int block_of(int p) {{\n  static constexpr int blocks[] = {{\n    "
        "{}}};\n"
        "  return blocks[p];\n}}\n",
        k.blocks(), about_numbers(k), listed(order, k.blocks()));
  } else {
    text += fmt::format(
        "/// The block that is started as number p does block_of(p): {}.\n"
        "UNTAX_ORDER_CODE inline int block_of(int p{}) {{\n{}  return p;\n}}\n",
        about_numbers(k), arguments_of(result, k, false), result.text());
  }
  return text + step_functions(order.way, false) + "\n#undef UNTAX_ORDER_CODE\n";
}

std::string to_triton(const block_order& order, const kernel& k) {
  const statements result = statements_of(order, k, true);
  std::string text =
      fmt::format("# {}{}.\n{}import triton\nimport triton.language as tl\n", order.name,
                  steps_of(order), result.needs_table() ? "import torch\n" : "");
  if (result.needs_table()) {
    require_table_that_fits(order, k);
    text += fmt::format(
        "\nBLOCKS = [\n    {}]\n\n\ndef order_table(device):\n    return torch.tensor(BLOCKS, "
        "dtype=torch.int32, device=device)\n\n\n# The block that is started as number p does "
        "block_of(p, "
        "table), of {}: {}.\n@triton.jit\ndef block_of(p, table):\n    return tl.load(table + p)\n",
        listed(order, k.blocks()), k.blocks(), about_numbers(k));
  } else {
    text += fmt::format(
        "\n\n# The block that is started as number p does block_of(p): {}.\n@triton.jit\n"
        "def block_of(p{}):\n{}    return p\n",
        about_numbers(k), arguments_of(result, k, true), result.text());
  }
  return text + step_functions(order.way, true);
}

}  // namespace untax::locality
