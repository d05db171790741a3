#include "explain/page.hpp"

#include "base/error.hpp"
#include "explain/layers.hpp"
#include "explain/memory.hpp"
#include "explain/moves.hpp"
#include "explain/page_parts.hpp"
#include "explain/timeline.hpp"
#include "plan/words.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace soybean::explain {
namespace {

using graph::Graph;
using graph::TensorId;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_points = 480; ///< of the memory's course
constexpr std::size_t most_listed = 12;  ///< rows of lists of the largest

template<class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json strategies(const PageContent& content) {
  Json list = Json::array();
  for (const Costed& costed : content.plans)
    list.push_back({{"name", costed.plan.strategy},
                    {"bytes", costed.plan.bytes},
                    {"seconds", costed.step ? Json(costed.step->seconds) : Json(nullptr)},
                    {"memory", costed.peak_memory()},
                    {"bottleneck", bottleneck(content.subject, costed)},
                    {"status", plan::status_text(costed.plan)}});
  return list;
}

/// The layer's weights and results, and whatever of its tensors moves.
Json tensors_of(const Graph& graph, const plan::Plan& plan, int layer) {
  Json list = Json::array();
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    const graph::Tensor& tensor = graph.tensors[t];
    const std::int64_t bytes = plan::data_bytes(graph, plan, id);
    const bool forward = tensor.producer != graph::none && graph.nodes[tensor.producer].phase == graph::Phase::forward;
    if (plan::layer_of(graph, id) != layer || graph::is_control(tensor.role) || tensor.previous != graph::none)
      continue;
    if (bytes > 0 || forward || tensor.role == graph::Role::parameter)
      list.push_back({{"name", tensor.name},
                      {"role", std::string(graph::to_string(tensor.role))},
                      {"shape", soybean::to_string(tensor.shape)},
                      {"tiling", plan::tiling_words(plan.stored[t], plan.mesh)},
                      {"bytes", bytes}});
  }
  return list;
}

/// What moves between two layers, the first of them being the one whose result the other uses.
struct Edge {
  std::int64_t forward = 0, backward = 0;
};

struct Traffic {
  std::map<std::pair<int, int>, Edge> edges;
  std::vector<std::int64_t> inside; ///< per layer
};

Traffic traffic(const Graph& graph, const plan::Plan& plan) {
  Traffic traffic;
  traffic.inside.assign(graph.layers.size(), 0);
  for (const graph::Tensor& tensor : graph.tensors) {
    if (tensor.producer == graph::none || graph.nodes[tensor.producer].phase != graph::Phase::forward) continue;
    const int from = graph.nodes[tensor.producer].layer;
    for (const graph::NodeId n : tensor.consumers)
      if (const int to = graph.nodes[n].layer;
          graph.nodes[n].phase == graph::Phase::forward && from != graph::none && to != graph::none && from < to)
        traffic.edges[{from, to}];
  }
  for (const Move& move : all_moves(graph, plan)) {
    const auto [first, second] = std::minmax(move.from_layer, move.to_layer);
    if (first == graph::none && second == graph::none) continue;
    if (first == second || first == graph::none) {
      traffic.inside[second] += move.bytes;
      continue;
    }
    Edge& edge = traffic.edges[{first, second}];
    const graph::Phase phase = move.node == graph::none ? graph::Phase::forward : graph.nodes[move.node].phase;
    (phase == graph::Phase::forward ? edge.forward : edge.backward) += move.bytes;
  }
  return traffic;
}

Json layers(const PageContent& content, const Traffic& traffic) {
  const Graph& graph = content.subject.graph;
  const Costed& costed = content.plans[0];
  const std::vector<LayerFigures> figures = layer_figures(content.subject, costed);
  Json list = Json::array();
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const LayerFigures& f = figures[i];
    const graph::NodeId main = plan::main_node(graph, static_cast<int>(i));
    list.push_back(
        {{"name", graph.layers[i].name},
         {"op", graph.layers[i].op},
         {"shape", main == graph::none ? "" : soybean::to_string(graph.tensors[graph.nodes[main].outputs[0]].shape)},
         {"kind", f.kind},
         {"split", f.split},
         {"why", f.why},
         {"bytes", f.bytes},
         {"inside", traffic.inside[i]},
         {"held", f.held},
         {"seconds", or_null(f.seconds)},
         {"tensors", tensors_of(graph, costed.plan, static_cast<int>(i))}});
  }
  return list;
}

Json edges(const Traffic& traffic) {
  Json list = Json::array();
  for (const auto& [layers, edge] : traffic.edges)
    list.push_back(
        {{"from", layers.first}, {"to", layers.second}, {"forward", edge.forward}, {"backward", edge.backward}});
  return list;
}

/// The course in at most so many points, of each stretch the one at which most is held.
Json points(const MemoryCourse& course) {
  const std::size_t count = course.bytes.size(),
                    stretch = std::max<std::size_t>(1, (count + most_points - 1) / most_points);
  Json list = Json::array();
  for (std::size_t begin = 0; begin < count; begin += stretch) {
    std::size_t most = begin;
    for (std::size_t i = begin; i < std::min(count, begin + stretch); ++i)
      if (total(course.bytes[i]) > total(course.bytes[most])) most = i;
    Json point = {most};
    for (const std::int64_t bytes : course.bytes[most]) point.push_back(bytes);
    list.push_back(std::move(point));
  }
  return list;
}

Json memory(const PageContent& content) {
  const Graph& graph = content.subject.graph;
  const Costed& costed = content.plans[0];
  const program::Program& program = costed.program;
  const MemoryCourse course = memory_course(graph, costed);
  Json kinds = Json::array(), largest = Json::array();
  for (std::size_t kind = 0; kind < held_kinds; ++kind)
    kinds.push_back(std::string(to_string(static_cast<Held>(kind))));
  for (std::size_t i = 0; i < std::min(most_listed, course.at_peak.size()); ++i)
    largest.push_back({{"name", program.buffers[course.at_peak[i].buffer].name}, {"bytes", course.at_peak[i].bytes}});
  const auto forward_end = std::find_if(program.instructions.begin(), program.instructions.end(), [&](const auto& i) {
    return i.node != graph::none && graph.nodes[i.node].phase != graph::Phase::forward;
  });
  const graph::NodeId at = program.instructions[course.peak].node;
  return {{"kinds", kinds},
          {"points", points(course)},
          {"instructions", program.instructions.size()},
          {"forward_end", forward_end - program.instructions.begin()},
          {"allocated", costed.peak_memory()},
          {"peak",
           {{"at", course.peak},
            {"bytes", total(course.bytes[course.peak])},
            {"node", at == graph::none ? "the end" : graph.nodes[at].name},
            {"kinds", course.bytes[course.peak]}}},
          {"at_peak", largest}};
}

Json bar(const TimelineBar& bar) {
  return {bar.begin, bar.end, bar.what, bar.kind};
}

Json timeline(const PageContent& content) {
  const Costed& costed = content.plans[0];
  if (!costed.step) return nullptr;
  const simulate::Step& step = *costed.step;
  const Timeline drawn = make_timeline(content.subject.graph, costed, most_listed);
  Json kernels = Json::array(), transfers = Json::array(), longest = Json::array();
  for (const TimelineBar& b : drawn.kernels) kernels.push_back(bar(b));
  for (const TimelineBar& b : drawn.transfers) transfers.push_back(bar(b));
  for (const TimelineItem& item : drawn.longest)
    longest.push_back({{"what", item.what}, {"layer", item.layer}, {"seconds", item.seconds}});
  return {{"seconds", step.seconds},
          {"sums",
           {{"reading", step.reading},
            {"forward", step.computing[0]},
            {"backward", step.computing[1]},
            {"update", step.computing[2]},
            {"packing", step.packing},
            {"waiting", step.waiting},
            {"transferring", step.transferring}}},
          {"kernels", kernels},
          {"transfers", transfers},
          {"longest", longest}};
}

Json sweep(const std::vector<SweepPoint>& points) {
  Json list = Json::array();
  for (const SweepPoint& point : points) {
    Json plans = Json::array();
    for (const SweepPlan& plan : point.plans)
      plans.push_back({{"strategy", plan.strategy},
                       {"bytes", plan.bytes},
                       {"seconds", plan.step ? Json(plan.step->seconds) : Json(nullptr)}});
    list.push_back({{"ranks", point.ranks}, {"batch", point.batch}, {"status", point.status}, {"plans", plans}});
  }
  return list;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

void fill_in(std::string& text, std::string_view name, std::string_view with) {
  const std::size_t at = text.find(name);
  ensure(at != std::string::npos, "the page's template has all its places");
  text.replace(at, name.size(), with);
}

} // namespace

std::string page_data(const PageContent& content) {
  const Subject& subject = content.subject;
  const Graph& graph = subject.graph;
  const plan::Plan& first = content.plans.at(0).plan;
  const Traffic moved = traffic(graph, first);
  Json json = {{"model", graph.name},
               {"ranks", tiling::ranks(first.mesh)},
               {"mesh", to_string(first.mesh)},
               {"batch", subject.batch},
               {"precision", std::string(to_string(graph.precision))},
               {"pinned", subject.pinned},
               {"machine", nullptr},
               {"version", content.version},
               {"planning_seconds", content.planning_seconds},
               {"strategies", strategies(content)},
               {"layers", layers(content, moved)},
               {"edges", edges(moved)},
               {"memory", memory(content)},
               {"timeline", timeline(content)},
               {"sweep", sweep(content.sweep)}};
  if (subject.setting != nullptr)
    json["machine"] = {{"name", subject.setting->machine.name}, {"memory", subject.setting->machine.memory}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string page(const PageContent& content) {
  std::string data;
  for (const char c : page_data(content)) { // nothing in it may end the element it lies in
    if (c == '<')
      data += "\\u003c";
    else
      data += c;
  }
  std::string text(page_html);
  fill_in(text, "{{js}}", page_js); // the last place first: what is filled in may look like a place
  fill_in(text, "{{data}}", data);
  fill_in(text, "{{css}}", page_css);
  fill_in(text, "{{title}}", escaped(content.subject.graph.name) + ": how it is split");
  return text;
}

} // namespace soybean::explain
