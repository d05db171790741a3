#pragma once
// What the nodes of a small graph may do under brute force, and what each tensor then costs. Used by brute_force.cpp.
#include "graph/graph.hpp"
#include "ops/form.hpp"
#include "tiling/mesh.hpp"
#include "unit/plan/brute_force.hpp"
#include "unit/plan/element_moves.hpp"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace soybean::test {

constexpr Price operator+(const Price& a, const Price& b) {
  return {a.moved + b.moved, a.held + b.held};
}

/// What a node does: the numbers of its operands' tilings, inputs first.
using Numbers = std::vector<int>;
/// What a variable does: that of each node that is fixed with it.
using Value = std::map<graph::NodeId, Numbers>;
/// Per variable, which of its values it has.
using Assignment = std::u16string;

/// What all variables may do.
class Values {
public:
  Values(const graph::Graph& graph, const tiling::Mesh& mesh, const Scope& scope, std::vector<ElementMoves>& moves);

  const graph::Graph& graph() const { return graph_; }
  const tiling::Mesh& mesh() const { return mesh_; }
  ImageSplits images() const { return scope_.images; }
  ElementMoves& moves(graph::TensorId id) const { return moves_[id]; }

  std::size_t size() const { return values_.size(); }
  int variable(graph::NodeId n) const { return variable_[n]; }
  const std::vector<Value>& of(int variable) const { return values_[variable]; }
  /// Nanoseconds of a variable's nodes on the machine, per value; 0 where there is none.
  std::vector<std::int64_t> computing(int variable) const;
  std::int64_t moved(graph::TensorId id, int from, int to) const; ///< bytes, or nanoseconds

private:
  bool allows(const ops::Form& form, ops::Choice choice) const;
  void list(const std::vector<graph::NodeId>& members);
  std::int64_t computing_of(const std::vector<graph::NodeId>& members, const std::vector<ops::Choice>& choices) const;
  Value value_of(const std::vector<graph::NodeId>& members, const std::vector<ops::Choice>& choices);
  bool leaves_idle(const Value& value) const;
  void settle();
  bool deliverable(const Value& value) const;
  bool made_for_one(graph::TensorId t, int number) const;

  const graph::Graph& graph_;
  const tiling::Mesh& mesh_;
  const Scope& scope_;
  std::vector<ElementMoves>& moves_; // per tensor
  std::vector<int> variable_;        // per node
  std::vector<std::vector<graph::NodeId>> members_;
  std::vector<std::map<Value, std::int64_t>> computing_; // per variable
  std::vector<std::vector<Value>> values_, busy_, all_;  // per variable; those without idle ranks; all the form allows
};

/// What a tensor costs, given what the variables that make and use it do.
class TensorPrice {
public:
  TensorPrice(const Values& values, graph::TensorId id);

  const std::vector<int>& variables() const { return variables_; }
  bool of(int variable) const;
  /// Which of the values of variables()[i] are the same to the tensor: those with equal numbers, from 0 on.
  const std::u16string& aspects(std::size_t i) const { return aspects_[i].of_value; }
  const std::u16string& aspects_of(int variable) const;
  std::size_t aspect_count(std::size_t i) const { return aspects_[i].list.size(); }

  /// Where the variables do what the assignment says.
  const Price& operator()(const Assignment& assignment);

private:
  struct Use {
    graph::NodeId node;
    graph::TensorId operand;
    bool makes; // or needs it
  };
  /// How the tensor is made and needed by a variable: numbers of tilings.
  struct Aspect {
    std::vector<int> produced, needed;
    auto operator<=>(const Aspect&) const = default;
  };
  struct Aspects {
    std::vector<Aspect> list;
    std::u16string of_value; // which of them
  };
  using PerValue = std::vector<Aspect>;

  void add(const Values& values, const Use& use, std::vector<PerValue>& uses);
  static Aspects number_aspects(const PerValue& of_value);
  void list_stored(const Values& values, const std::vector<Use>& uses);
  Price price(const Assignment& assignment);
  Price held(int number) const { return {0, size_ * moves_.fullest(number)}; }

  const graph::Tensor& tensor_;
  const Values& values_;
  graph::TensorId id_;
  ElementMoves& moves_;
  std::int64_t size_; // bytes of an element
  bool kept_;
  std::vector<int> stored_, variables_;
  std::vector<Aspects> aspects_;                   // per variable
  std::unordered_map<std::uint64_t, Price> known_; // by aspects
};

} // namespace soybean::test
