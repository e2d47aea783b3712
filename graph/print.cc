#include <unordered_map>

#include "sinter/graph/graph.h"
#include "sinter/graph/strings.h"

namespace sinter {
namespace {

std::string Quoted(std::string_view s) { return AttrValueToString(AttrValue(std::string(s))); }

class GraphPrinter {
 public:
  explicit GraphPrinter(bool locations) : locations_(locations) {}

  std::string Print(const Graph& g) {
    StrAppend(&out_, "graph ", Quoted(g.name), " numerics ", NumericsName(g.numerics), "(");
    for (int i = 0; i < g.num_args; ++i) {
      const Value& v = *g.body.params[i];
      StrAppend(&out_, i ? ", " : "", Name(&v), " ", Quoted(v.name), ": ", TypeToString(v.type));
    }
    StrAppend(&out_, ")");
    for (const StateSlot& s : g.states) {
      const Value& v = *g.body.params[s.param];
      StrAppend(&out_, "\n  state(", Name(&v), " ", Quoted(s.name), ": ", TypeToString(v.type), s.trainable ? " trainable" : "",
                s.result >= 0 ? StrCat(" result ", s.result) : "", ")");
    }
    for (Dim d : g.Symbols()) {
      const Dim::Facts f = d.facts();
      StrAppend(&out_, "\n  dim(", d.symbol_name(), " in [", f.min, ", ", f.max, "] multiple ", f.multiple_of, ")");
    }
    for (const GuardedCond& c : g.guards)
      StrAppend(&out_, "\n  guard(", static_cast<int>(c.condition.op), ", ", c.condition.a.ToString(), ", ", c.condition.b.ToString(), ", ",
                Quoted(c.message), ")");
    StrAppend(&out_, "\n  outputs ", g.num_outputs, " {\n");
    PrintBody(g.body, 1);
    StrAppend(&out_, "}\n");
    return std::move(out_);
  }

 private:
  std::string Name(const Value* v) {
    auto [it, fresh] = names_.emplace(v, "");
    if (fresh) it->second = StrCat("%", names_.size() - 1);
    return it->second;
  }

  std::string Names(const std::vector<Value*>& values) {
    std::string s;
    for (const Value* v : values) StrAppend(&s, s.empty() ? "" : ", ", Name(v));
    return s;
  }

  void PrintBody(const Block& b, int depth) {
    for (const auto& n : b.nodes) PrintNode(*n, depth);
    StrAppend(&out_, std::string(2 * depth, ' '), "return ", Names(b.results), "\n");
  }

  void PrintNode(const Node& n, int depth) {
    const std::string indent(2 * depth, ' ');
    StrAppend(&out_, indent);
    for (size_t i = 0; i < n.outputs.size(); ++i) StrAppend(&out_, i ? ", " : "", Name(n.out(static_cast<int>(i))));
    StrAppend(&out_, n.outputs.empty() ? "" : " = ", n.op->name, "(", Names(n.inputs), ")");
    if (std::string attrs = AttrsToString(n.attrs); !attrs.empty()) StrAppend(&out_, " {", attrs, "}");
    for (size_t i = 0; i < n.outputs.size(); ++i) StrAppend(&out_, i ? ", " : " : ", TypeToString(n.out(static_cast<int>(i))->type));
    for (const auto& r : n.regions) {
      StrAppend(&out_, " (");
      for (size_t i = 0; i < r->params.size(); ++i) StrAppend(&out_, i ? ", " : "", Name(r->params[i].get()), ": ", TypeToString(r->params[i]->type));
      StrAppend(&out_, ") {\n");
      PrintBody(*r, depth + 1);
      StrAppend(&out_, indent, "}");
    }
    if (locations_)
      if (std::string at = n.Location(); !at.empty()) StrAppend(&out_, "  # ", at);
    StrAppend(&out_, "\n");
  }

  bool locations_;
  std::string out_;
  std::unordered_map<const Value*, std::string> names_;
};

}  // namespace

std::string_view NumericsName(Numerics n) {
  switch (n) {
    case Numerics::kExact: return "exact";
    case Numerics::kDefault: return "default";
    case Numerics::kFast: return "fast";
  }
  return "unknown";
}

std::string Print(const Graph& graph, bool with_locations) { return GraphPrinter(with_locations).Print(graph); }

uint64_t HashGraph(const Graph& graph) {
  // FNV-1a over the text: stable between runs and machines.
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : Print(graph)) h = (h ^ c) * 0x100000001b3u;
  return h;
}

}  // namespace sinter
