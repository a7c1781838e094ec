#include <untax/locality/emit.hpp>

#include <set>

#include <fmt/format.h>

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

/// Generates statements in C or in Python, which differ only in syntax.
class statements {
 public:
  explicit statements(bool is_python) : is_python_(is_python) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether a part of the order is not generated as arithmetic, so that it needs a table.
  [[nodiscard]] bool needs_table() const { return needs_table_; }

  void operator()(const listed_order& /*order*/) { needs_table_ = true; }
  void operator()(const order::chunked_remap& r) {
    const int group = r.domains * r.chunk;
    const int whole = r.chunk > r.blocks / r.domains ? 0 : r.blocks / group * group;
    const int height = (r.blocks - whole) / r.domains;
    const int tall = (r.blocks - whole) % r.domains;
    set("domain", divided(fmt::format("(p - {})", whole), r.domains, true));
    if (whole < r.blocks) {
      set("rest", fmt::format("{} + domain * {} + {} + {}", whole, height,
                              where(fmt::format("domain < {}", tall), "domain", number(tall)),
                              divided(fmt::format("(p - {})", whole), r.domains, false)));
    }
    if (whole > 0) {
      set("within", divided("p", group, true));
      set("group", fmt::format("p - within + {} * {} + {}", divided("within", r.domains, true),
                               r.chunk, divided("within", r.domains, false)));
    }
    if (whole == 0) {
      set("p", "rest");
    } else if (whole == r.blocks) {
      set("p", "group");
    } else {
      set("p", where(fmt::format("p < {}", whole), "group", "rest"));
    }
  }
  void operator()(const remap_of_rows& r) { repeat(r.part.size(), r.times, r.part); }
  void operator()(const axes_in_order& a) {
    set("left", "p");
    int stride[6];
    int all = 1;
    for (int i = 5; i >= 0; --i) {
      stride[i] = all;
      all *= a.extent[i];
    }
    std::string sum;
    for (int i = 5; i >= 0; --i) {
      const int axis = a.slowest_first[i];
      if (a.extent[axis] == 1) continue;
      const std::string name = fmt::format("place{}", axis);
      set(name, divided("left", a.extent[axis], true));
      set("left", divided("left", a.extent[axis], false));
      sum += fmt::format("{}{} * {}", sum.empty() ? "" : " + ", name, stride[axis]);
    }
    set("p", sum.empty() ? "p" : sum);
  }
  void operator()(const last_first_along& a) {
    const int extent = a.along.blocks;
    set("place", divided(divided("p", a.inner, false), extent, true));
    set("p", fmt::format("p + ({} - 2 * place) * {}", extent - 1, a.inner));
  }
  template <class Way>
  void operator()(const plane<Way>& p) {
    repeat(p.part.size(), p.times, p.part.way);
  }

 private:
  template <class Part>
  void repeat(int size, int times, const Part& part) {
    if (times > 1) {
      set("base", fmt::format("p - {}", divided("p", size, true)));
      set("p", "p - base");
    }
    inner(part);
    if (times > 1) set("p", "base + p");
  }
  void inner(const order::chunked_remap& r) { (*this)(r); }
  void inner(const order::banded& w) {
    in_bands(number(w.x_tiles), number(w.y_tiles), w.band);
    set("p", fmt::format("y * {} + x", w.x_tiles));
  }
  void inner(const order::snake& w) {
    in_bands(number(w.x_tiles), number(w.y_tiles), w.band);
    turn(w);
    set("p", fmt::format("y * {} + x", w.x_tiles));
  }
  void inner(const order::transposed<order::banded>& w) {
    in_bands(number(w.way.x_tiles), number(w.way.y_tiles), w.way.band);
    set("p", fmt::format("x * {} + y", w.x_tiles));
  }
  void inner(const order::transposed<order::snake>& w) {
    in_bands(number(w.way.x_tiles), number(w.way.y_tiles), w.way.band);
    turn(w.way);
    set("p", fmt::format("x * {} + y", w.x_tiles));
  }
  void inner(const order::rectangles& w) {
    set("row", "0");
    for (int j = 1; j < w.down; ++j) {
      const int end = static_cast<int>(std::int64_t{w.y_tiles} * j / w.down) * w.x_tiles;
      set("row", "row + " + where(fmt::format("p >= {}", end), "1", "0"));
    }
    set("top", divided(fmt::format("(row * {})", w.y_tiles), w.down, false));
    set("height", divided(fmt::format("((row + 1) * {})", w.y_tiles), w.down, false) + " - top");
    set("p", fmt::format("p - top * {}", w.x_tiles));
    set("column", "0");
    for (int i = 1; i < w.across; ++i) {
      const int end = static_cast<int>(std::int64_t{w.x_tiles} * i / w.across);
      set("column", "column + " + where(fmt::format("p >= {} * height", end), "1", "0"));
    }
    set("left", divided(fmt::format("(column * {})", w.x_tiles), w.across, false));
    set("width",
        divided(fmt::format("((column + 1) * {})", w.x_tiles), w.across, false) + " - left");
    set("p", "p - left * height");
    in_bands("width", "height", w.band);
    set("p", fmt::format("(top + y) * {} + left + x", w.x_tiles));
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
  void turn(const order::snake& w) {
    const std::string odd = divided(divided("x", w.band, false), 2, true);
    set("y", where(odd + " == 0", "y", fmt::format("{} - y", w.y_tiles - 1)));
  }

  void set(const std::string& name, const std::string& value) {
    const bool is_new = !is_python_ && name != "p" && declared_.insert(name).second;
    text_ += fmt::format("{}{}{} = {}{}\n", is_python_ ? "    " : "  ", is_new ? "int " : "", name,
                         value, is_python_ ? "" : ";");
  }
  [[nodiscard]] static std::string number(int value) { return fmt::format("{}", value); }
  template <class By>
  [[nodiscard]] std::string divided(const std::string& what, const By& by, bool is_rest) const {
    const char* sign = is_rest ? "%" : is_python_ ? "//" : "/";
    return fmt::format("({} {} {})", what, sign, by);
  }
  [[nodiscard]] std::string where(const std::string& condition, const std::string& yes,
                                  const std::string& no) const {
    return is_python_ ? fmt::format("tl.where({}, {}, {})", condition, yes, no)
                      : fmt::format("({} ? {} : {})", condition, yes, no);
  }

  bool is_python_;
  bool needs_table_ = false;
  std::string text_;
  std::set<std::string> declared_;
};

statements statements_of(const block_order& order, bool is_python) {
  statements made(is_python);
  for (const order_part& part : order.parts) std::visit(made, part);
  return made;
}

std::string steps_of(const block_order& order) {
  if (order.way == order::direction::forward) return {};
  const char* meaning = order.way == order::direction::joined
                            ? "a block begins at the latest step of a block that reads the same "
                              "in its domain, which a word in memory has, and goes round"
                            : "every other block that a processor takes goes back";
  return fmt::format("; steps {}: {}", name_of(order.way), meaning);
}

}  // namespace

std::string to_cpp(const block_order& order, const kernel& k) {
  std::string value;
  for (std::size_t i = order.parts.size(); i-- > 0;) {
    const std::string part = std::visit([](const auto& p) { return in_cpp(p); }, order.parts[i]);
    value = value.empty() ? part : fmt::format("composed{{{},\n    {}}}", part, value);
  }
  if (value.empty()) value = fmt::format("as_numbered{{{}}}", k.blocks());
  return fmt::format(
      "#pragma once\n\n#include <untax/order/axes.hpp>\n#include <untax/order/curves.hpp>\n"
      "#include <untax/order/order.hpp>\n#include <untax/order/raster.hpp>\n"
      "#include <untax/order/rectangles.hpp>\n#include <untax/order/remap.hpp>\n\n"
      "/// {}{}. The block that is started as number p does block_of(p), of {}.\n"
      "UNTAX_HOST_DEVICE constexpr int block_of(int p) {{\n  using namespace untax::order;\n"
      "  return {}.block(p);\n}}\n",
      order.name, steps_of(order), k.blocks(), value);
}

std::string to_hip(const block_order& order, const kernel& k) {
  const statements made = statements_of(order, false);
  const std::string about = fmt::format("// {}{}. The block that is started as number p, of {}.\n",
                                        order.name, steps_of(order), k.blocks());
  if (made.needs_table())
    return about + "__device__ int block_of(int p, const int* table) { return table[p]; }\n";
  return fmt::format("{}__device__ int block_of(int p) {{\n{}  return p;\n}}\n", about,
                     made.text());
}

std::string to_triton(const block_order& order, const kernel& k) {
  const statements made = statements_of(order, true);
  const std::string about = fmt::format(
      "import triton\nimport triton.language as tl\n\n\n"
      "# {}{}. The block that is started as number p, of {}.\n@triton.jit\n",
      order.name, steps_of(order), k.blocks());
  if (made.needs_table()) return about + "def block_of(p, table):\n    return tl.load(table + p)\n";
  return fmt::format("{}def block_of(p):\n{}    return p\n", about, made.text());
}

}  // namespace untax::locality
