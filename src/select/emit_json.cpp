#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/select/emit.hpp>

#include "src/core/json.hpp"
#include "src/select/named_trees.hpp"
#include "src/select/schema_json.hpp"

namespace untax::select {
namespace {

using nlohmann::json;

constexpr int format_version = 1;

json json_of(const decision_tree& tree) {
  json nodes = json::array();
  for (const decision_tree::node& n : tree.nodes()) {
    json object = {{"choice", n.choice}, {"records", n.records}, {"loss", n.loss}};
    if (n.feature >= 0) {
      object["feature"] = n.feature;
      object["threshold"] = n.threshold;
      object["low"] = n.low;
      object["high"] = n.high;
    }
    nodes.push_back(std::move(object));
  }
  return nodes;
}

decision_tree tree_of(const json& nodes) {
  std::vector<decision_tree::node> result;
  for (const json& object : nodes) {
    decision_tree::node n;
    n.choice = object.at("choice").get<int>();
    n.records = object.at("records").get<std::size_t>();
    n.loss = object.at("loss").get<double>();
    if (object.contains("feature")) {
      n.feature = object["feature"].get<int>();
      n.threshold = object.at("threshold").get<double>();
      n.low = object.at("low").get<int>();
      n.high = object.at("high").get<int>();
    }
    result.push_back(n);
  }
  return decision_tree(std::move(result));
}

}  // namespace

std::string to_json(const selector& s) {
  json whole = {{"untax_selector", format_version},
                {"schema", json_of(s.what())},
                {"fallback", s.fallback()}};
  for (const named_tree& t : trees_of(s)) whole["trees"][t.name] = json_of(*t.tree);
  return whole.dump(1) + "\n";
}

selector read_selector(std::string_view text, std::string_view origin) {
  const json whole = parse_json(text, origin);
  const auto refuse = [&](const std::string& what) {
    throw error(errc::invalid_argument, fmt::format("{}: {}", origin, what));
  };
  if (!whole.is_object() || whole.value("untax_selector", json()) != format_version) {
    refuse(fmt::format("this is not a selector of version {}; `untax select train` writes one",
                       format_version));
  }
  try {
    schema what = schema_of(whole.at("schema"), origin);
    const json& trees = whole.at("trees");
    return {std::move(what), tree_of(trees.at("known")), tree_of(trees.at("gathered")),
            tree_of(trees.at("gather")), whole.at("fallback").get<int>()};
  } catch (const json::exception& wrong) {
    refuse(fmt::format("a field is missing or has another type: {}", wrong.what()));
  } catch (const error& wrong) {
    refuse(wrong.what());
  }
  throw error(errc::internal, "an invalid selector was not refused");
}

}  // namespace untax::select
