#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sinter/graph/op.h"

/// The static program: SSA values with symbolic types, in structured regions.
///
/// Semantics
/// - A value is defined once, as a block parameter or as the result of a node, and is visible in the rest of its block and
///   in the regions of later nodes there.
/// - Nodes have no effects, except control flow around nodes with kEffect ops; views and in-place writes are functional here. State is
///   explicit: read as an argument, written as a result.
/// - Nodes of one block may run in any order that respects their operands; each gives the bits that its op defines, whatever is fused.
///   A node without used results may be dropped and any node may be duplicated; the advance of a random state is ordinary arithmetic on that state.
/// - `if` [pred]: two regions without parameters whose results are the node's. `while` [carried...]: region 0 (condition) and region
///   1 (body) take the carried values; region 0 gives one bool, region 1 the next carried values; results are the carried values when the condition is false.
namespace sinter {

class Graph;
struct Node;
struct Block;

struct Value {
  TensorType type;
  Node* node = nullptr;    ///< the node whose result this is; null for a block parameter
  Block* block = nullptr;  ///< the block of which this is a parameter; null for a result
  int index = 0;           ///< among the results or parameters
  std::string name;        ///< of an argument or state, else empty
  int id = 0;              ///< unique in the graph; for printing and maps
};

struct Node {
  const OpDef* op = nullptr;
  AttrPtr attrs;
  std::vector<Value*> inputs;
  std::vector<std::unique_ptr<Value>> outputs;
  std::vector<std::unique_ptr<Block>> regions;
  Block* parent = nullptr;
  std::vector<void*> stack;   ///< call stack of the user's call; empty if unknown
  std::string origin;         ///< the pass that made the node; empty for a captured one
  std::string source;         ///< "model.cpp:42" of a graph read from a file, whose stack is gone

  Value* out(int i = 0) const { return outputs[i].get(); }
  /// Where the user wrote it: source, or the resolved stack.
  std::string Location() const;
};

struct Block {
  using Nodes = std::list<std::unique_ptr<Node>>;
  std::vector<std::unique_ptr<Value>> params;
  Nodes nodes;
  std::vector<Value*> results;
  Node* parent = nullptr;  ///< the node whose region this is; null for the graph's body
  Graph* graph = nullptr;
};

/// A state cell that the graph reads and perhaps writes.
struct StateSlot {
  std::string name;      ///< stable: "fc1.weight"
  int param = 0;         ///< parameter of the body that reads it
  int result = -1;       ///< result of the body that is written back; -1: read only
  bool trainable = false;  ///< a Parameter (as opposed to a buffer, optimizer or generator state)
};

/// How exactly the compiled program must equal the eager one (see docs/numerics.md).
enum class Numerics : uint8_t { kExact = 0, kDefault = 1, kFast = 2 };
/// "exact", "default", "fast".
std::string_view NumericsName(Numerics n);

struct GuardedCond {
  DimCond condition;
  std::string message;
  std::string location;
};

/// One entry point: arguments, then states, are the parameters of `body`; outputs, then written states, its results.
class Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name = "main";
  Block body;
  int num_args = 0;
  int num_outputs = 0;
  std::vector<StateSlot> states;
  std::vector<GuardedCond> guards;
  Numerics numerics = Numerics::kDefault;

  Value* AddArg(TensorType type, std::string name);           ///< before any state
  Value* AddState(TensorType type, std::string name, bool trainable);
  /// Appends a node to `block` (or before `before`); types are inferred, guards collected. Control flow: MakeIf, MakeWhile.
  Node* AddNode(Block& block, const OpDef& op, AttrPtr attrs, std::vector<Value*> inputs, std::vector<void*> stack = {},
                const Node* before = nullptr);
  /// An `if`/`while` node with empty regions, whose result types are given; the caller fills the regions.
  Node* AddIf(Block& block, Value* predicate, std::vector<TensorType> results, std::vector<void*> stack = {});
  Node* AddWhile(Block& block, std::vector<Value*> carried, std::vector<void*> stack = {});
  /// Appends results to a control-flow node.
  void AddResults(Node* node, const std::vector<TensorType>& types);
  Value* AddParam(Block& block, TensorType type, std::string name = {});
  /// A constant of the body.
  Value* Constant(Block& block, TensorLiteral literal, const Node* before = nullptr);
  void SetOutputs(std::vector<Value*> outputs);               ///< before any state result
  void SetStateResult(int state, Value* value);

  /// A copy of a node at the end of `to` with other inputs; results are added to `map`.
  Node* CloneNode(const Node& n, Block& to, std::vector<Value*> inputs, std::unordered_map<const Value*, Value*>& map);
  /// Replaces every use of `from` in the graph by `to`.
  void ReplaceAllUses(Value* from, Value* to);
  /// Removes a node whose results have no uses.
  void Erase(Node* node);
  std::unique_ptr<Graph> Clone() const;
  /// The named symbols that occur in any type, by name.
  std::vector<Dim> Symbols() const;
  int NumNodes() const;

 private:
  std::unique_ptr<Value> NewValue(TensorType type);
  int next_id_ = 0;
};

/// Copies nodes of `from` to the end of `to`, mapping operands through `map` (values that are not in it must be visible in
/// `to` as they are); adds the results to `map`. Returns `from.results` mapped.
std::vector<Value*> CloneInto(const Block& from, Block& to, std::unordered_map<const Value*, Value*>& map);

/// Builds nodes at the end of a block (or before a node): what decompositions and gradients of graphs run on.
class GraphBuilder final : public Builder {
 public:
  explicit GraphBuilder(Block& block, const Node* before = nullptr) : block_(&block), before_(before) {}
  std::vector<Var> Apply(const OpDef& op, AttrPtr attrs, std::span<const Var> inputs) override;
  const TensorType& Type(const Var& v) override { return reinterpret_cast<Value*>(v.id())->type; }
  Var Wrap(Value* v) { return v ? Var(this, reinterpret_cast<uintptr_t>(v)) : Var(); }
  static Value* Unwrap(const Var& v) { return v ? reinterpret_cast<Value*>(v.id()) : nullptr; }
  void SetStack(std::vector<void*> stack, std::string source, std::string origin);

 private:
  Block* block_;
  const Node* before_;
  std::vector<void*> stack_;
  std::string source_, origin_;
};

/// Visits every node, regions included, in order.
void ForEachNode(const Graph& graph, const std::function<void(Node&)>& fn);
/// Number of uses of every value.
std::unordered_map<const Value*, int> CountUses(const Graph& graph);

/// What stands for results of nodes that were replaced. Keeps those nodes, so that no new value has the address of an old one.
class ReplacedValues {
 public:
  void Add(const Value* old, Value* by) { by_[old] = by; }
  void Keep(std::unique_ptr<Node> node) { gone_.push_back(std::move(node)); }
  bool empty() const { return by_.empty(); }
  /// `v`, or what stands for it now.
  Value* Present(Value* v) const {
    for (auto it = by_.find(v); it != by_.end(); it = by_.find(v)) v = it->second;
    return v;
  }
  /// Puts what stands for them into a node's operands, a block's results, or all of a graph in one walk. A pass that replaces many values
  /// goes through a graph once; Graph::ReplaceAllUses is for the one.
  void Apply(std::vector<Value*>& values) const {
    for (Value*& v : values) v = Present(v);
  }
  void Apply(Block& block) const;

 private:
  std::unordered_map<const Value*, Value*> by_;
  std::vector<std::unique_ptr<Node>> gone_;
};
/// Replaces a composite node by its decomposition, placed where it was; returns the first node of that, or the node after where there is none.
Block::Nodes::iterator DecomposeNode(Block& block, Block::Nodes::iterator at, ReplacedValues* replaced = nullptr);
/// Replaces every composite (kComposite) for which `keep` is false by its decomposition, recursively.
bool DecomposeComposites(Graph& graph, const std::function<bool(const Node&)>& keep = {});

/// Checks every rule above and every type; the Error (InternalError for a broken graph made by a pass named in `after`)
/// shows the offending node between its neighbours.
void Verify(const Graph& graph, std::string_view after = {});

/// Text form. Print and Parse are inverse up to value numbers; `with_locations` adds the user's lines as comments.
///
///   graph main(%x: float32[n, 784]) state(%w "fc.weight": float32[784, 10] trainable) symbols(n in [0, 100] multiple 4) {
///     %1 = matmul(%x, %w) : float32[n, 10]
///     %2 = softmax(%1) {dim = -1} : float32[n, 10]
///     return %2
///   }
std::string Print(const Graph& graph, bool with_locations = false);
std::unique_ptr<Graph> Parse(std::string_view text);
/// Structural hash: equal for graphs that print the same. The key of compiled programs.
uint64_t HashGraph(const Graph& graph);

}  // namespace sinter
