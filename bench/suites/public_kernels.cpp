#include "bench/suites/public_kernels.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"

namespace untax::bench {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw error(errc::invalid_argument, "public kernels: " + text);
}

/// A text; null in the file means that it is not known.
std::string recorded(const nlohmann::json& in, const char* key) {
  const nlohmann::json& value = in.at(key);
  return value.is_null() ? std::string() : value.get<std::string>();
}

public_time time_of(const nlohmann::json& in) {
  const public_time time{in.at("ranks"), in.at("m"), in.at("n"), in.at("k"),
                         1e-6 * in.at("microseconds").get<double>()};
  if (time.ranks < 1 || time.m < 1 || time.n < 1 || time.k < 1 || !(time.seconds > 0)) {
    refuse(fmt::format(
        "an entry of \"times\" is {}; ranks, sizes and microseconds have to be positive",
        shown(in)));
  }
  return time;
}

public_kernel kernel_of(const nlohmann::json& in) {
  public_kernel kernel;
  in.at("operator").get_to(kernel.operator_name);
  if (in.at("gather") == name_of(gather_axis::k)) kernel.gather = gather_axis::k;
  in.at("label").get_to(kernel.label);
  in.at("machine").get_to(kernel.machine);
  in.at("how").get_to(kernel.how);
  kernel.name = recorded(in, "name");
  kernel.source = recorded(in, "source");
  kernel.commit = recorded(in, "commit");
  for (const std::string* text : {&kernel.label, &kernel.machine, &kernel.how}) {
    if (text->empty()) refuse("label, machine or how is empty; each of them needs a text");
  }
  for (const nlohmann::json& entry : in.at("times")) kernel.times.push_back(time_of(entry));
  return kernel;
}

}  // namespace

double public_kernel::seconds(const gemm_problem& problem, int world) const noexcept {
  const auto match = std::ranges::find_if(times, [&](const public_time& t) {
    return t.ranks == world && t.m == problem.m && t.n == problem.n && t.k == problem.k;
  });
  return match == times.end() || problem.gather != gather ? 0 : match->seconds;
}

std::vector<public_kernel> parse_public_kernels(std::string_view text) {
  try {
    const nlohmann::json in = parse_json(text, "public kernels");
    if (in.at("format") != "untax-public-kernels")
      refuse("\"format\" has to be \"untax-public-kernels\"");
    std::vector<public_kernel> kernels;
    for (const nlohmann::json& entry : in.at("kernels")) kernels.push_back(kernel_of(entry));
    return kernels;
  } catch (const nlohmann::json::exception& wrong) {
    refuse(wrong.what());
  }
}

const std::vector<public_kernel>& public_kernels() {
  static const std::vector<public_kernel> kernels = parse_public_kernels(public_kernels_text());
  return kernels;
}

const public_kernel* public_kernel_of(std::string_view operator_name) {
  const auto& kernels = public_kernels();
  const auto match = std::ranges::find(kernels, operator_name, &public_kernel::operator_name);
  return match == kernels.end() ? nullptr : &*match;
}

}  // namespace untax::bench
