#include "unit/plan/tensor_prices.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace soybean::test {
namespace {

using graph::NodeId;
using graph::Role;
using graph::TensorId;
using tiling::Mesh;
using tiling::Tiling;

constexpr Price impossible{ElementMoves::impossible, 0};

/// All lists of one of the options per cut.
template<class Option>
std::vector<std::vector<Option>> lists_of(const std::vector<Option>& options, const Mesh& mesh) {
  std::vector<std::vector<Option>> lists = {{}};
  for (std::size_t cut = 0; cut < mesh.cuts.size(); ++cut) {
    std::vector<std::vector<Option>> longer;
    for (const auto& list : lists)
      for (const Option& option : options) {
        longer.push_back(list);
        longer.back().push_back(option);
      }
    lists = std::move(longer);
  }
  return lists;
}

bool has_one_unit_per_dim(const Tiling& tiling) {
  for (const tiling::Entry& a : tiling)
    for (const tiling::Entry& b : tiling)
      if (a.kind == b.kind && a.dim == b.dim && a.unit != b.unit) return false;
  return true;
}

} // namespace

Values::Values(const graph::Graph& graph, const Mesh& mesh, const Scope& scope, std::vector<ElementMoves>& moves)
    : graph_(graph), mesh_(mesh), scope_(scope), moves_(moves) {
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    const NodeId twin = graph_.nodes[n].twin;
    if (twin == graph::none) members_.emplace_back();
    variable_.push_back(twin == graph::none ? static_cast<int>(members_.size()) - 1 : variable_[twin]);
    members_[variable_[n]].push_back(static_cast<NodeId>(n));
  }
  for (const std::vector<NodeId>& members : members_) list(members);
  settle();
}

bool Values::allows(const ops::Form& form, ops::Choice choice) const {
  if (choice < 0 || !form.indices[choice].spatial) return true;
  if (scope_.images == ImageSplits::rows) return form.indices[choice].name == "h";
  return scope_.images == ImageSplits::rows_and_columns;
}

void Values::list(const std::vector<NodeId>& members) {
  const ops::Form form = ops::form(graph_, graph_.nodes[members[0]]);
  std::vector<ops::Choice> choices = ops::allowed_choices(form);
  std::erase_if(choices, [&](ops::Choice choice) { return !allows(form, choice); });
  std::set<Value> all, busy; // choices that come to the same tilings are one
  std::map<Value, std::int64_t>& computing = computing_.emplace_back();
  for (const auto& vector : lists_of(choices, mesh_)) {
    const Value value = value_of(members, vector);
    const std::int64_t time = computing_of(members, vector);
    std::int64_t& least = computing.try_emplace(value, time).first->second;
    least = std::min(least, time);
    const bool admitted = scope_.admitted != nullptr && scope_.admitted->choices[members[0]] == vector;
    if (admitted || form.may_idle || !leaves_idle(value)) busy.insert(value);
    all.insert(value);
  }
  busy_.emplace_back(busy.begin(), busy.end());
  all_.emplace_back(all.begin(), all.end());
}

std::int64_t Values::computing_of(const std::vector<NodeId>& members, const std::vector<ops::Choice>& choices) const {
  std::int64_t sum = 0;
  for (std::size_t m = 0; m < members.size() && scope_.machine != nullptr; ++m) {
    const graph::Node& node = graph_.nodes[members[m]];
    const ops::Form form = ops::form(graph_, node);
    sum += std::llround(1e9 * machine::node_seconds(*scope_.machine, graph_, node, form, choices));
    const ops::OperandTilings tilings = ops::operand_tilings(form, graph_, node, mesh_, choices);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) { // metrics are brought to all ranks
      const graph::Tensor& tensor = graph_.tensors[node.outputs[i]];
      if (tensor.role != Role::metric || tilings.outputs[i] == tiling::replicated(mesh_)) continue;
      const machine::StepSeconds seconds =
          machine::move_seconds(*scope_.machine, tensor, tilings.outputs[i], tiling::replicated(mesh_));
      sum += std::llround(1e9 * (seconds.network + seconds.local));
    }
  }
  return sum;
}

std::vector<std::int64_t> Values::computing(int variable) const {
  std::vector<std::int64_t> times;
  for (const Value& value : values_[variable]) times.push_back(computing_[variable].at(value));
  return times;
}

std::int64_t Values::moved(TensorId id, int from, int to) const {
  const graph::Tensor& tensor = graph_.tensors[id];
  if (scope_.machine == nullptr) return size_of(tensor.dtype) * moves_[id].elements(from, to);
  const machine::StepSeconds seconds =
      machine::move_seconds(*scope_.machine, tensor, moves_[id].tiling(from), moves_[id].tiling(to));
  return std::llround(1e9 * (seconds.network + seconds.local));
}

Value Values::value_of(const std::vector<NodeId>& members, const std::vector<ops::Choice>& choices) {
  Value value;
  for (NodeId n : members) {
    const graph::Node& node = graph_.nodes[n];
    const ops::OperandTilings operands = ops::operand_tilings(ops::form(graph_, node), graph_, node, mesh_, choices);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      value[n].push_back(moves_[node.inputs[i]].number(operands.inputs[i]));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      value[n].push_back(moves_[node.outputs[i]].number(operands.outputs[i]));
  }
  return value;
}

bool Values::leaves_idle(const Value& value) const {
  for (const auto& [n, numbers] : value) {
    const graph::Node& node = graph_.nodes[n];
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const TensorId t = i < node.inputs.size() ? node.inputs[i] : node.outputs[i - node.inputs.size()];
      if (moves_[t].leaves_idle(numbers[i])) return true;
    }
  }
  return false;
}

/// Leaves out values that can only be parts of impossible plans. A node left with none may leave ranks idle.
void Values::settle() {
  values_ = busy_;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const auto before = values_[v].size();
      std::erase_if(values_[v], [&](const Value& value) { return !deliverable(value); });
      changed = changed || values_[v].size() != before;
    }
    if (changed) continue;
    for (std::size_t v = 0; v < values_.size() && !changed; ++v)
      if (values_[v].empty() && busy_[v].size() < all_[v].size()) changed = true;
    if (!changed) return;
    for (std::size_t v = 0; v < values_.size(); ++v)
      if (values_[v].empty()) busy_[v] = all_[v];
    values_ = busy_;
  }
}

/// Each partial sum it takes can be what its tensor's maker makes, for it alone.
bool Values::deliverable(const Value& value) const {
  for (const auto& [n, numbers] : value)
    for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
      const TensorId t = graph_.nodes[n].inputs[i];
      if (moves_[t].partial(numbers[i]) && !made_for_one(t, numbers[i])) return false;
    }
  return true;
}

bool Values::made_for_one(TensorId t, int number) const {
  const graph::Tensor& tensor = graph_.tensors[t];
  std::ptrdiff_t uses = 0;
  for (NodeId user : tensor.consumers)
    uses += std::count(graph_.nodes[user].inputs.begin(), graph_.nodes[user].inputs.end(), t);
  if (uses > 1 || tensor.producer == graph::none) return false;
  const graph::Node& maker = graph_.nodes[tensor.producer];
  const auto at = std::find(maker.outputs.begin(), maker.outputs.end(), t) - maker.outputs.begin();
  const std::vector<Value>& makers = values_[variable_[tensor.producer]];
  return std::any_of(makers.begin(), makers.end(), [&](const Value& value) {
    return value.at(tensor.producer)[maker.inputs.size() + static_cast<std::size_t>(at)] == number;
  });
}

TensorPrice::TensorPrice(const Values& values, TensorId id)
    : tensor_(values.graph().tensors[id]),
      values_(values),
      id_(id),
      moves_(values.moves(id)),
      size_(size_of(tensor_.dtype)),
      kept_(tensor_.role == Role::parameter || tensor_.role == Role::state) {
  std::vector<Use> uses;
  const TensorId made = tensor_.next == graph::none ? id : tensor_.next;
  if (const NodeId maker = values.graph().tensors[made].producer; maker != graph::none)
    uses.push_back({maker, made, true});
  for (NodeId n : tensor_.consumers) uses.push_back({n, id, false});
  std::vector<PerValue> per_variable;
  for (const Use& use : uses) add(values, use, per_variable);
  for (PerValue& of_value : per_variable) {
    for (Aspect& aspect : of_value) // what it becomes has numbers of its own
      for (int& number : aspect.produced) number = moves_.number(values.moves(made).tiling(number));
    aspects_.push_back(number_aspects(of_value));
  }
  list_stored(values, uses);
  double combinations = 1;
  for (const Aspects& aspects : aspects_) combinations *= static_cast<double>(aspects.list.size());
  ensure(combinations < 0x1p63, "a tensor has too many users to number what they do");
}

bool TensorPrice::of(int variable) const {
  return std::find(variables_.begin(), variables_.end(), variable) != variables_.end();
}

const std::u16string& TensorPrice::aspects_of(int variable) const {
  return aspects_[std::find(variables_.begin(), variables_.end(), variable) - variables_.begin()].of_value;
}

void TensorPrice::add(const Values& values, const Use& use, std::vector<PerValue>& uses) {
  const int variable = values.variable(use.node);
  const auto at = std::find(variables_.begin(), variables_.end(), variable) - variables_.begin();
  if (!of(variable)) {
    variables_.push_back(variable);
    uses.emplace_back(values.of(variable).size());
  }
  const graph::Node& node = values.graph().nodes[use.node];
  const std::vector<TensorId>& operands = use.makes ? node.outputs : node.inputs;
  const std::size_t first = use.makes ? node.inputs.size() : 0;
  for (std::size_t x = 0; x < uses[at].size(); ++x)
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] != use.operand) continue;
      Aspect& aspect = uses[at][x];
      (use.makes ? aspect.produced : aspect.needed).push_back(values.of(variable)[x].at(use.node)[first + i]);
    }
}

TensorPrice::Aspects TensorPrice::number_aspects(const PerValue& of_value) {
  Aspects aspects;
  for (const Aspect& aspect : of_value) {
    const auto known = std::find(aspects.list.begin(), aspects.list.end(), aspect);
    aspects.of_value.push_back(static_cast<char16_t>(known - aspects.list.begin()));
    if (known == aspects.list.end()) aspects.list.push_back(aspect);
  }
  return aspects;
}

/// Splits of dims in the tensor's own units and in those of each operand form; replicated.
void TensorPrice::list_stored(const Values& values, const std::vector<Use>& uses) {
  std::set<tiling::Entry> entries{tiling::replicate()};
  bool of_samples = false;
  for (std::size_t d = 0; d < tensor_.shape.size(); ++d)
    entries.insert(tiling::split(static_cast<int>(d), tensor_.units[d]));
  for (const Use& use : uses) {
    const graph::Node& node = values.graph().nodes[use.node];
    const ops::Form form = ops::form(values.graph(), node);
    const std::vector<TensorId>& operands = use.makes ? node.outputs : node.inputs;
    for (std::size_t i = 0; i < operands.size(); ++i)
      for (std::size_t d = 0; operands[i] == use.operand && d < tensor_.shape.size(); ++d) {
        const ops::OperandDim& dim = (use.makes ? form.outputs : form.inputs)[i][d];
        entries.insert(tiling::split(static_cast<int>(d), dim.unit));
        of_samples = of_samples || (dim.index >= 0 && form.indices[dim.index].batch);
      }
  }
  const int whole = 2 + static_cast<int>(values.images()); // of images, this dim and those after it
  if (of_samples) std::erase_if(entries, [&](const tiling::Entry& entry) { return entry.dim >= whole; });
  std::set<int> numbers;
  for (const Tiling& tiling : lists_of<tiling::Entry>({entries.begin(), entries.end()}, values.mesh()))
    if (has_one_unit_per_dim(tiling))
      numbers.insert(moves_.number(tiling::normalise(tiling, tensor_.shape, values.mesh())));
  stored_.assign(numbers.begin(), numbers.end());
}

const Price& TensorPrice::operator()(const Assignment& assignment) {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < variables_.size(); ++i)
    key = key * aspects_[i].list.size() + aspects_[i].of_value[assignment[variables_[i]]];
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new) known->second = price(assignment);
  return known->second;
}

Price TensorPrice::price(const Assignment& assignment) {
  std::vector<int> produced, needed; // at most one; one per use
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const Aspect& aspect = aspects_[i].list[aspects_[i].of_value[assignment[variables_[i]]]];
    produced.insert(produced.end(), aspect.produced.begin(), aspect.produced.end());
    needed.insert(needed.end(), aspect.needed.begin(), aspect.needed.end());
  }
  if (needed.empty() && !kept_) return {0, 0};
  if (!produced.empty() && !kept_ && needed == produced && moves_.partial(produced[0])) return held(produced[0]);
  const std::set<int> distinct(needed.begin(), needed.end());
  if (std::any_of(distinct.begin(), distinct.end(), [&](int need) { return moves_.partial(need); })) return impossible;
  if (produced.empty() && !kept_) {
    Price sum;
    for (int need : distinct) sum = sum + held(need);
    return sum;
  }
  Price best = impossible;
  for (int stored : stored_) {
    Price sum = held(stored);
    if (!produced.empty()) sum.moved += values_.moved(id_, produced[0], stored);
    for (int need : distinct)
      if (need != stored) sum = sum + Price{values_.moved(id_, stored, need), 0} + held(need);
    best = std::min(best, sum);
  }
  return best;
}

} // namespace soybean::test
