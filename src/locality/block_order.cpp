#include <untax/locality/block_order.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::locality {

int block_order::block(int position) const {
  for (const order_part& part : parts)
    position = std::visit([&](const auto& p) { return p.block(position); }, part);
  return position;
}

int block_order::position(int block) const {
  for (std::size_t i = parts.size(); i-- > 0;)
    block = std::visit([&](const auto& p) { return p.position(block); }, parts[i]);
  return block;
}

std::vector<int> block_order::table(int blocks) const {
  std::vector<int> made(static_cast<std::size_t>(blocks));
  for (int i = 0; i < blocks; ++i) made[static_cast<std::size_t>(i)] = block(i);
  return made;
}

const char* name_of(order::direction way) {
  switch (way) {
    case order::direction::forward:
      return "forward";
    case order::direction::backward:
      return "backward";
    case order::direction::sawtooth:
      return "sawtooth";
    case order::direction::staggered:
      return "staggered";
    case order::direction::joined:
      return "joined";
  }
  return "";
}

namespace {

/// Generates `order_space`: combines remaps, shapes and directions of steps.
class space {
 public:
  space(const kernel& k, int domains) : k_(k), domains_(domains), blocks_(k.blocks()) {
    for (std::size_t i = 0; i < k.axes().size(); ++i) {
      if (k.axes()[i].extent > 1) wide_.push_back(static_cast<int>(i));
    }
  }

  std::vector<block_order> make() {
    shapes();
    std::vector<block_order> orders;
    for (const auto way : ways()) {
      for (const int chunk : chunks()) {
        for (const block_order& shape : shapes_) {
          block_order joined = shape;
          joined.way = way;
          if (chunk > 0) {
            joined.parts.insert(joined.parts.begin(),
                                order::chunked_remap{blocks_, domains_, chunk});
            joined.name =
                (chunk > blocks_ / domains_ ? "full remap" : fmt::format("remap by {}", chunk)) +
                (joined.name == numbered ? "" : ", " + joined.name);
          }
          if (way != order::direction::forward)
            joined.name += fmt::format(", steps {}", name_of(way));
          if (keeps_needs(joined)) orders.push_back(std::move(joined));
        }
      }
    }
    return orders;
  }

 private:
  static constexpr const char* numbered = "as numbered";

  [[nodiscard]] std::vector<order::direction> ways() const {
    const bool has_steps = k_.steps(0) > 1 || !k_.has_equal_steps();
    if (!has_steps || !k_.drifts()) return {order::direction::forward};
    return {order::direction::forward, order::direction::sawtooth, order::direction::joined};
  }

  /// The chunks of the remaps to try; 0 is no remap.
  [[nodiscard]] std::vector<int> chunks() const {
    if (domains_ == 1) return {0};
    std::vector<int> result{0, blocks_ / domains_ + 1};
    if (k_.drifts()) {
      // The blocks along the last axis, which are those of one head, stay in one domain.
      if (!wide_.empty())
        result.push_back(k_.axes()[static_cast<std::size_t>(wide_.back())].extent);
    } else {
      for (const int chunk : {2, 4, 8, 16, 25, 32, 48, 64, 96, 128, 216, 256, 512, 1024})
        result.push_back(chunk);
    }
    std::erase_if(result, [&](int chunk) { return chunk > blocks_ / domains_ + 1; });
    return result;
  }

  void shapes() {
    shapes_.push_back({numbered, {}, order::direction::forward});
    if (k_.drifts()) {
      orders_of_axes();
    } else if (wide_.size() >= 2) {
      orders_of_plane();
    }
  }

  void orders_of_axes() {
    std::vector<int> permutation(wide_.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    while (std::next_permutation(permutation.begin(), permutation.end())) {
      axes_in_order axes = identity();
      std::string name;
      const int padding = 6 - static_cast<int>(k_.axes().size());
      for (std::size_t i = 0; i < wide_.size(); ++i) {
        const int axis = wide_[static_cast<std::size_t>(permutation[i])];
        axes.slowest_first[padding + wide_[i]] = padding + axis;
        name += (i == 0 ? "" : " ") + k_.axes()[static_cast<std::size_t>(axis)].name;
      }
      shapes_.push_back({"axes " + name, {axes}, order::direction::forward});
    }
    if (k_.has_equal_steps() || wide_.empty()) return;
    const std::vector<block_order> orders = shapes_;
    for (block_order shape : orders) {
      const auto last = static_cast<std::size_t>(wide_.back());
      int inner = 1;
      for (std::size_t i = last + 1; i < k_.axes().size(); ++i) inner *= k_.axes()[i].extent;
      const int extent = k_.axes()[last].extent;
      shape.parts.emplace_back(
          last_first_along{blocks_ / extent / inner, inner, order::last_first{extent}});
      shape.name += fmt::format(", {} last first", k_.axes()[last].name);
      shapes_.push_back(std::move(shape));
    }
  }

  [[nodiscard]] axes_in_order identity() const {
    axes_in_order order;
    const std::size_t padding = 6 - k_.axes().size();
    for (std::size_t i = 0; i < 6; ++i) {
      order.extent[i] = i < padding ? 1 : k_.axes()[i - padding].extent;
      order.slowest_first[i] = static_cast<int>(i);
    }
    return order;
  }

  template <class Way>
  void add(std::string name, const Way& way) {
    shapes_.push_back(
        {std::move(name),
         {plane<Way>{blocks_ / (way.x_tiles * way.y_tiles), order::through<Way>{way}}},
         order::direction::forward});
  }

  void orders_of_plane() {
    const std::string x_name = k_.axes()[static_cast<std::size_t>(wide_.back())].name;
    const std::string y_name = k_.axes()[static_cast<std::size_t>(wide_[wide_.size() - 2])].name;
    const int x = k_.axes()[static_cast<std::size_t>(wide_.back())].extent;
    const int y = k_.axes()[static_cast<std::size_t>(wide_[wide_.size() - 2])].extent;
    for (const int band : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64, 128}) {
      if (band < x) {
        add(fmt::format("bands of {} along {}", band, x_name), order::banded{x, y, band, 1});
        add(fmt::format("snake of {} along {}", band, x_name), order::snake{x, y, band});
      }
      if (band > 1 && band < y) {
        add(fmt::format("bands of {} along {}", band, y_name),
            order::transposed{order::banded{y, x, band, 1}});
        add(fmt::format("snake of {} along {}", band, y_name),
            order::transposed{order::snake{y, x, band}});
      }
    }
    add("Z curve", order::morton{x, y});
    add("Hilbert curve", order::hilbert{x, y});
    if (k_.has_dependences()) add("diagonals", order::diagonals{x, y});
    for (int across = 1; across <= domains_ && domains_ > 1; ++across) {
      const int down = domains_ / across;
      if (across * down != domains_ || across > x || down > y) continue;
      for (const int band : {1, 2, 4, 6, 8, 16}) {
        add(fmt::format("{} x {} rectangles, bands of {}", across, down, band),
            order::rectangles{x, y, across, down, band});
      }
    }
  }

  [[nodiscard]] bool keeps_needs(const block_order& order) const {
    if (!k_.has_dependences()) return true;
    for (int block = 0; block < blocks_; ++block) {
      for (const int needed : k_.needs(block)) {
        if (order.position(needed) > order.position(block)) return false;
      }
    }
    return true;
  }

  const kernel& k_;
  int domains_;
  int blocks_;
  std::vector<int> wide_;  // axes with an extent above 1
  std::vector<block_order> shapes_;
};

constexpr const char* attention_orders[] = {"naive block-first", "swizzled block-first",
                                            "naive head-first", "swizzled head-first"};

/// Whether the axes are those of attention, whose orders have names of their own.
bool is_attention(const kernel& k) {
  constexpr const char* names[] = {"b", "kv", "g", "i"};
  return std::ranges::equal(k.axes(), names, {}, &axis::name);
}

}  // namespace

std::vector<block_order> order_space(const kernel& k, int domains) {
  if (k.axes().size() > 6) {
    throw error(errc::invalid_argument,
                fmt::format("a grid of {} axes; there may be 6", k.axes().size()));
  }
  return space(k, domains).make();
}

std::vector<std::string> order_names(const kernel& k, int domains) {
  std::vector<std::string> names;
  if (is_attention(k)) names.assign(std::begin(attention_orders), std::end(attention_orders));
  for (const block_order& order : order_space(k, domains)) names.push_back(order.name);
  return names;
}

block_order order_named(const kernel& k, int domains, const std::string& name) {
  const auto& axes = k.axes();
  if (is_attention(k)) {
    const order::chunked_remap full = order::full_remap(k.blocks(), domains);
    const axes_in_order block_first{
        {1, 1, axes[0].extent, axes[1].extent, axes[2].extent, axes[3].extent}, {0, 1, 2, 5, 3, 4}};
    const int heads = axes[1].extent * axes[2].extent;
    if (name == "naive head-first") return {name, {}, order::direction::forward};
    if (name == "swizzled head-first") return {name, {full}, order::direction::forward};
    if (name == "naive block-first") return {name, {block_first}, order::direction::forward};
    if (name == "swizzled block-first") {
      // Remaps the heads within each row of blocks.
      const remap_of_rows rows{k.blocks() / heads, order::full_remap(heads, domains)};
      return {name, {rows, block_first}, order::direction::forward};
    }
  }
  for (block_order& domain : order_space(k, domains)) {
    if (domain.name == name) return std::move(domain);
  }
  throw error(errc::invalid_argument,
              fmt::format("there is no order \"{}\" for this kernel; untax locality --orders lists "
                          "those that there are",
                          name));
}

}  // namespace untax::locality
