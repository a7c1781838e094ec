#include "png.hpp"

#include <dlfcn.h>

#include <memory>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::cli {
namespace {

// The used functions of three libraries with stable C interfaces, declared here so that no build
// needs their headers: librsvg (2.46 or later), cairo and GObject.
struct rectangle {
  double x, y, width, height;
};
using write_function = int (*)(void* closure, const unsigned char* data, unsigned length);
constexpr int rgb24 = 1;

constexpr double pixels_per_unit = 2;

[[noreturn]] void refuse(const std::string& why) {
  throw error(
      errc::unsupported,
      fmt::format("a PNG takes librsvg and cairo (Debian: librsvg2-2, libcairo2): {}; a file "
                  "whose name ends in .svg takes neither",
                  why));
}

class library {
 public:
  explicit library(const char* name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* const reason = dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread
    refuse(reason != nullptr ? reason : name_ + " cannot be loaded");
  }
  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle_, name));  // NOLINT(*-reinterpret-cast)
    if (function == nullptr) refuse(fmt::format("{} has no {}", name_, name));
  }

 private:
  std::string name_;
  void* handle_;  // stays open: these libraries cannot be unloaded
};

struct drawing {
  void* (*read_svg)(const unsigned char*, std::size_t, void**) = nullptr;
  int (*size_of)(void*, double*, double*) = nullptr;
  int (*render)(void*, void*, const rectangle*, void**) = nullptr;
  void (*forget_svg)(void*) = nullptr;
  void* (*make_surface)(int, int, int) = nullptr;
  void (*forget_surface)(void*) = nullptr;
  void* (*make_pen)(void*) = nullptr;
  void (*forget_pen)(void*) = nullptr;
  int (*write_png)(void*, write_function, void*) = nullptr;
  const char* (*text_of)(int) = nullptr;

  drawing() {
    const library cairo("libcairo.so.2");
    const library objects("libgobject-2.0.so.0");
    const library svg("librsvg-2.so.2");
    svg.find("rsvg_handle_new_from_data", read_svg);
    svg.find("rsvg_handle_get_intrinsic_size_in_pixels", size_of);
    svg.find("rsvg_handle_render_document", render);
    objects.find("g_object_unref", forget_svg);
    cairo.find("cairo_image_surface_create", make_surface);
    cairo.find("cairo_surface_destroy", forget_surface);
    cairo.find("cairo_create", make_pen);
    cairo.find("cairo_destroy", forget_pen);
    cairo.find("cairo_surface_write_to_png_stream", write_png);
    cairo.find("cairo_status_to_string", text_of);
  }
};

using owned = std::unique_ptr<void, void (*)(void*)>;

int append(void* closure, const unsigned char* data, unsigned length) {
  const char* const bytes = reinterpret_cast<const char*>(data);  // NOLINT(*-reinterpret-cast)
  static_cast<std::string*>(closure)->append(bytes, length);
  return 0;
}

}  // namespace

std::string png_of(const std::string& svg) {
  static const drawing use;
  const auto* const bytes =
      reinterpret_cast<const unsigned char*>(svg.data());  // NOLINT(*-reinterpret-cast)
  const owned picture(use.read_svg(bytes, svg.size(), nullptr), use.forget_svg);
  rectangle whole{};
  if (picture == nullptr || use.size_of(picture.get(), &whole.width, &whole.height) == 0)
    throw error(errc::invalid_argument,
                "a PNG is made of an SVG of a known size, and the text is not one");
  whole.width *= pixels_per_unit;
  whole.height *= pixels_per_unit;
  const owned surface(
      use.make_surface(rgb24, static_cast<int>(whole.width), static_cast<int>(whole.height)),
      use.forget_surface);
  const owned pen(use.make_pen(surface.get()), use.forget_pen);
  std::string out;
  const bool drawn = use.render(picture.get(), pen.get(), &whole, nullptr) != 0;
  const int status = drawn ? use.write_png(surface.get(), &append, &out) : 0;
  if (!drawn || status != 0)
    refuse(drawn ? use.text_of(status) : "librsvg could not draw the picture");
  return out;
}

}  // namespace untax::cli
