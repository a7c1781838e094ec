#pragma once

#include <untax/core/host_device.hpp>

namespace untax::order {

/// An order of blocks that are numbered over `Axes` axes, the first the slowest: batch, head,
/// block, split. They are started with the axes in another order: `slowest_first[0]` names the axis
/// that changes last.
template <int Axes>
struct axis_order {
  int extent[Axes] = {};
  int slowest_first[Axes] = {};

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const {
    int all = 1;
    for (const int e : extent) all *= e;
    return all;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    int place[Axes] = {};
    for (int i = Axes - 1; i >= 0; --i) {
      const int axis = slowest_first[i];
      place[axis] = position % extent[axis];
      position /= extent[axis];
    }
    int block = 0;
    for (int axis = 0; axis < Axes; ++axis) block = block * extent[axis] + place[axis];
    return block;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const {
    int place[Axes] = {};
    for (int axis = Axes - 1; axis >= 0; --axis) {
      place[axis] = block % extent[axis];
      block /= extent[axis];
    }
    int position = 0;
    for (const int axis : slowest_first) position = position * extent[axis] + place[axis];
    return position;
  }
};

/// Applies an order to one axis, and leaves the axes outside (`outer` places) and inside (`inner`
/// places) of it as they are. The axis has `along.size()` places, each of `inner` blocks.
template <class Along>
struct along_axis {
  int outer = 1;
  int inner = 1;
  Along along;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const {
    return outer * along.size() * inner;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    const int place = position / inner % along.size();
    return position + (along.block(place) - place) * inner;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const {
    const int place = block / inner % along.size();
    return block + (along.position(place) - place) * inner;
  }
};
template <class Along>
along_axis(int, int, Along) -> along_axis<Along>;

}  // namespace untax::order
