#include "sinter/serialize/format/graph_file.h"

#include <cstring>

#include "flatbuffers/flatbuffers.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/strings.h"
#include "sinter/serialize/format/file_io.h"
#include "sinter/serialize/format/sgraph_generated.h"

namespace sinter::format {
namespace {

using flatbuffers::Offset;
using flatbuffers::Vector;
using FbString = flatbuffers::String;

constexpr uint32_t kVersion = 1;
constexpr size_t kMaxNodes = 1 << 20;
constexpr int kMaxDepth = 64;
// The file: FlatBuffer, then its SHA-256 as 64 digits.
constexpr size_t kDigest = 64;

// Writing -------------------------------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(flatbuffers::FlatBufferBuilder& b) : b_(b) {}

  Offset<fbs::Entry> Entry(const Graph& g) {
    Offset<fbs::Block> body = WriteBlock(g.body);
    std::vector<Offset<fbs::State>> states;
    for (const StateSlot& s : g.states) states.push_back(fbs::CreateState(b_, String(s.name), s.result, s.trainable));
    std::vector<Offset<fbs::Symbol>> symbols;
    for (Dim d : g.Symbols()) symbols.push_back(fbs::CreateSymbol(b_, String(d.symbol_name()), d.facts().min, d.facts().max, d.facts().multiple_of));
    std::vector<Offset<fbs::Guard>> guards;
    for (const GuardedCond& c : g.guards)
      guards.push_back(fbs::CreateGuard(b_, static_cast<uint8_t>(c.condition.op), String(c.condition.a.ToString()), String(c.condition.b.ToString()), String(c.message), String(c.location)));
    return fbs::CreateEntry(b_, String(g.name), static_cast<uint32_t>(g.num_args), static_cast<uint32_t>(g.num_outputs), body, b_.CreateVector(states),
                            b_.CreateVector(symbols), b_.CreateVector(guards), static_cast<uint8_t>(g.numerics));
  }

 private:
  Offset<FbString> String(std::string_view s) { return b_.CreateSharedString(s.data(), s.size()); }
  Offset<Vector<Offset<FbString>>> Dims(std::span<const Dim> dims) {
    std::vector<Offset<FbString>> v;
    for (Dim d : dims) v.push_back(String(d.ToString()));
    return b_.CreateVector(v);
  }
  Offset<fbs::Type> Type(const TensorType& t) { return fbs::CreateType(b_, static_cast<uint8_t>(t.dtype), Dims(t.shape)); }

  uint32_t Number(const Value* v) { return numbers_.at(v); }
  void Define(const Value* v) { numbers_.emplace(v, static_cast<uint32_t>(numbers_.size())); }

  Offset<fbs::Attr> Attr(const AttrField& f) {
    fbs::AttrValue type = fbs::AttrValue::NONE;
    Offset<void> value;
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, bool>) type = fbs::AttrValue::BoolValue, value = fbs::CreateBoolValue(b_, v).Union();
          else if constexpr (std::is_same_v<T, int64_t>) type = fbs::AttrValue::IntValue, value = fbs::CreateIntValue(b_, v).Union();
          else if constexpr (std::is_same_v<T, double>) type = fbs::AttrValue::DoubleValue, value = fbs::CreateDoubleValue(b_, v).Union();
          else if constexpr (std::is_same_v<T, std::string>) type = fbs::AttrValue::StringValue, value = fbs::CreateStringValue(b_, String(v)).Union();
          else if constexpr (std::is_same_v<T, DType>) type = fbs::AttrValue::TypeValue, value = fbs::CreateTypeValue(b_, static_cast<uint8_t>(v)).Union();
          else if constexpr (std::is_same_v<T, std::vector<int64_t>>) type = fbs::AttrValue::IntsValue, value = fbs::CreateIntsValue(b_, b_.CreateVector(v)).Union();
          else if constexpr (std::is_same_v<T, Dim>) type = fbs::AttrValue::DimValue, value = fbs::CreateDimValue(b_, String(v.ToString())).Union();
          else if constexpr (std::is_same_v<T, std::vector<Dim>>) type = fbs::AttrValue::DimsValue, value = fbs::CreateDimsValue(b_, Dims(v)).Union();
          else {
            std::vector<int64_t> shape(v.shape.begin(), v.shape.end());
            auto bytes = b_.CreateVector(reinterpret_cast<const uint8_t*>(v.bytes->data()), v.bytes->size());
            type = fbs::AttrValue::LiteralValue;
            value = fbs::CreateLiteralValue(b_, static_cast<uint8_t>(v.dtype), b_.CreateVector(shape), bytes).Union();
          }
        },
        f.value);
    return fbs::CreateAttr(b_, String(f.name), type, value);
  }

  Offset<fbs::Block> WriteBlock(const Block& block) {
    std::vector<Offset<fbs::Type>> params;
    std::vector<Offset<FbString>> names;
    for (const auto& p : block.params) {
      Define(p.get());
      params.push_back(Type(p->type));
      names.push_back(String(p->name));
    }
    std::vector<Offset<fbs::Node>> nodes;
    for (const auto& n : block.nodes) nodes.push_back(WriteNode(*n));
    std::vector<uint32_t> results;
    for (const Value* v : block.results) results.push_back(Number(v));
    return fbs::CreateBlock(b_, b_.CreateVector(params), b_.CreateVector(names), b_.CreateVector(nodes), b_.CreateVector(results));
  }

  Offset<fbs::Node> WriteNode(const Node& n) {
    std::vector<uint32_t> inputs;
    for (const Value* v : n.inputs) inputs.push_back(Number(v));
    std::vector<Offset<fbs::Block>> regions;
    for (const auto& r : n.regions) regions.push_back(WriteBlock(*r));
    std::vector<Offset<fbs::Type>> outputs;
    for (const auto& o : n.outputs) {
      Define(o.get());
      outputs.push_back(Type(o->type));
    }
    std::vector<Offset<fbs::Attr>> attrs;
    if (n.attrs)
      for (const AttrField& f : n.attrs->Fields()) attrs.push_back(Attr(f));
    return fbs::CreateNode(b_, String(n.op->name), n.op->since, b_.CreateVector(attrs), b_.CreateVector(inputs), b_.CreateVector(outputs),
                           b_.CreateVector(regions), String(n.Location()));
  }

  flatbuffers::FlatBufferBuilder& b_;
  std::unordered_map<const Value*, uint32_t> numbers_;
};

// Reading -------------------------------------------------------------------------------------------------------

// The structure is verified by FlatBuffers before; here every content is.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  std::unique_ptr<Graph> Entry(const fbs::Entry& e) {
    if (e.body() == nullptr || e.states() == nullptr || e.symbols() == nullptr || e.guards() == nullptr) Fail("an entry is incomplete");
    symbols_.clear();
    values_.clear();
    nodes_ = 0;
    for (const fbs::Symbol* s : *e.symbols()) {
      const std::string name = Text(s->name());
      if (symbols_.contains(name)) Fail("a dimension is declared twice");
      symbols_.emplace(name, Dim::Symbol(name, {s->min(), s->max(), s->multiple_of()}));
    }
    auto g = std::make_unique<Graph>();
    g->name = Text(e.name());
    const fbs::Block& body = *e.body();
    CheckBlock(body);
    const uint32_t params = body.params()->size();
    if (e.num_args() > params || params - e.num_args() != e.states()->size()) Fail("the parameters are not the arguments and states");
    for (uint32_t i = 0; i < params; ++i) {
      const std::string name = Text(body.param_names()->Get(i));
      if (i < e.num_args()) {
        values_.push_back(g->AddArg(Type(body.params()->Get(i)), name));
      } else {
        const fbs::State* s = e.states()->Get(i - e.num_args());
        values_.push_back(g->AddState(Type(body.params()->Get(i)), Text(s->name()), s->trainable()));
        g->states.back().result = s->result();
      }
    }
    ReadNodes(*g, g->body, body, 0);
    if (e.num_outputs() > body.results()->size()) Fail("more outputs than results");
    g->num_outputs = static_cast<int>(e.num_outputs());
    for (uint32_t r : *body.results()) g->body.results.push_back(At(r));
    g->guards.clear();
    for (const fbs::Guard* c : *e.guards()) {
      if (c->op() > DimCond::kDivisible) Fail("a guard is damaged");
      g->guards.push_back({{static_cast<DimCond::Op>(c->op()), ParseDim(c->a()), ParseDim(c->b())}, Text(c->message()), Text(c->location())});
    }
    if (e.numerics() > static_cast<uint8_t>(Numerics::kFast)) Fail("the numerics contract is not known");
    g->numerics = static_cast<Numerics>(e.numerics());
    Verify(*g);
    return g;
  }

 private:
  [[noreturn]] void Fail(const std::string& problem) { throw Error(ErrorCode::kDataLoss, StrCat("'", file_, "' is not a sound program: ", problem)); }

  std::string Text(const FbString* s) {
    if (s == nullptr) return "";
    if (s->size() > 1 << 16) Fail("a text is too long");
    return s->str();
  }
  Dim ParseDim(const FbString* s) {
    if (s == nullptr) Fail("a size is missing");
    return Dim::Parse(std::string_view(s->c_str(), s->size()), [&](std::string_view name) {
      auto it = symbols_.find(std::string(name));
      if (it == symbols_.end()) Fail(StrCat("the dimension '", name.substr(0, 64), "' is not declared"));
      return it->second;
    });
  }
  DType ReadDType(uint8_t t) {
    if (t >= kNumDTypes) Fail("an element type is not known");
    return static_cast<DType>(t);
  }
  TensorType Type(const fbs::Type* t) {
    if (t == nullptr || t->shape() == nullptr || t->shape()->size() > kMaxRank) Fail("a type is damaged");
    TensorType r{ReadDType(t->dtype()), {}};
    for (const FbString* d : *t->shape()) {
      r.shape.push_back(ParseDim(d));
      if (r.shape.back().is_const() && r.shape.back().value() < 0) Fail("a size is negative");
    }
    return r;
  }
  Value* At(uint32_t i) {
    if (i >= values_.size()) Fail("a value is used before it is defined");
    return values_[i];
  }
  void CheckBlock(const fbs::Block& b) {
    if (b.params() == nullptr || b.param_names() == nullptr || b.nodes() == nullptr || b.results() == nullptr || b.param_names()->size() != b.params()->size())
      Fail("a block is incomplete");
  }

  AttrValue Attr(const fbs::Attr& a) {
    if (a.value() == nullptr) Fail("an attribute has no value");
    switch (a.value_type()) {
      case fbs::AttrValue::BoolValue: return a.value_as_BoolValue()->v();
      case fbs::AttrValue::IntValue: return static_cast<int64_t>(a.value_as_IntValue()->v());
      case fbs::AttrValue::DoubleValue: return a.value_as_DoubleValue()->v();
      case fbs::AttrValue::StringValue: return Text(a.value_as_StringValue()->v());
      case fbs::AttrValue::TypeValue: return ReadDType(a.value_as_TypeValue()->v());
      case fbs::AttrValue::IntsValue: {
        std::vector<int64_t> v;
        if (const auto* ints = a.value_as_IntsValue()->v()) v.assign(ints->begin(), ints->end());
        return v;
      }
      case fbs::AttrValue::DimValue: return ParseDim(a.value_as_DimValue()->v());
      case fbs::AttrValue::DimsValue: {
        std::vector<Dim> v;
        if (const auto* dims = a.value_as_DimsValue()->v())
          for (const FbString* d : *dims) v.push_back(ParseDim(d));
        return v;
      }
      case fbs::AttrValue::LiteralValue: {
        const fbs::LiteralValue& l = *a.value_as_LiteralValue();
        TensorLiteral t{ReadDType(l.dtype()), {}, nullptr};
        if (l.shape() == nullptr || l.bytes() == nullptr || l.shape()->size() > kMaxRank) Fail("a constant is damaged");
        for (int64_t d : *l.shape()) {
          if (d < 0) Fail("a constant has a negative size");
          t.shape.push_back(d);
        }
        const uint64_t count = static_cast<uint64_t>(NumElements(t.shape));
        if (count > l.bytes()->size() || count * static_cast<uint64_t>(ItemSize(t.dtype)) != l.bytes()->size()) Fail("a constant has another number of bytes than its shape says");
        const auto* p = reinterpret_cast<const std::byte*>(l.bytes()->data());
        t.bytes = std::make_shared<std::vector<std::byte>>(p, p + l.bytes()->size());
        return t;
      }
      default: Fail("an attribute has an unknown type");
    }
  }

  void ReadNodes(Graph& g, Block& block, const fbs::Block& from, int depth) {
    if (depth > kMaxDepth) Fail("regions are nested too deeply");
    for (const fbs::Node* n : *from.nodes()) {
      if (++nodes_ > kMaxNodes) Fail("too many nodes");
      ReadNode(g, block, *n, depth);
    }
  }

  void ReadRegion(Graph& g, Block& region, const fbs::Block& from, int depth, bool has_params) {
    CheckBlock(from);
    if (has_params) {
      if (from.params()->size() != region.params.size()) Fail("a loop's region has another number of parameters");
      for (const auto& p : region.params) values_.push_back(p.get());
    } else if (from.params()->size() != 0) {
      Fail("a branch has parameters");
    }
    ReadNodes(g, region, from, depth + 1);
    for (uint32_t r : *from.results()) region.results.push_back(At(r));
    // Values of the region keep their numbers but are out of sight from here on: the verifier refuses uses of them.
  }

  void ReadNode(Graph& g, Block& block, const fbs::Node& n, int depth) {
    if (n.op() == nullptr || n.inputs() == nullptr || n.outputs() == nullptr || n.regions() == nullptr || n.attrs() == nullptr) Fail("a node is incomplete");
    const OpDef& op = GetOp(std::string_view(n.op()->c_str(), n.op()->size()));
    if (n.since() > op.since)
      throw Error(ErrorCode::kUnimplemented, StrCat("'", file_, "' needs version ", n.since(), " of op '", op.name, "', this Sinter has version ", op.since, "; update Sinter"));
    std::vector<AttrField> fields;
    for (const fbs::Attr* a : *n.attrs()) fields.push_back({Text(a->name()), Attr(*a)});
    AttrPtr attrs = fields.empty() ? nullptr : op.parse_attrs(fields);
    std::vector<Value*> inputs;
    for (uint32_t i : *n.inputs()) inputs.push_back(At(i));
    Node* made = nullptr;
    if (&op == &DefOf<ops::If>() || &op == &DefOf<ops::While>()) {
      if (n.regions()->size() != 2) Fail("control flow needs two regions");
      const bool loop = &op == &DefOf<ops::While>();
      if (!loop && inputs.size() != 1) Fail("an `if` has one predicate");
      std::vector<TensorType> types;
      for (const fbs::Type* t : *n.outputs()) types.push_back(Type(t));
      made = loop ? g.AddWhile(block, inputs) : g.AddIf(block, inputs[0], types);
      made->attrs = op.AttrsOrDefault(attrs);
      for (uint32_t r = 0; r < 2; ++r) ReadRegion(g, *made->regions[r], *n.regions()->Get(r), depth, loop);
    } else {
      if (n.regions()->size() != 0) Fail("a node has regions");
      made = g.AddNode(block, op, attrs, std::move(inputs));
    }
    if (made->outputs.size() != n.outputs()->size()) Fail(StrCat("a node '", op.name, "' has another number of results"));
    made->source = Text(n.source());
    for (size_t i = 0; i < made->outputs.size(); ++i) {
      if (!(made->outputs[i]->type == Type(n.outputs()->Get(static_cast<uint32_t>(i))))) Fail(StrCat("a result of '", op.name, "' has another type than its op gives"));
      values_.push_back(made->outputs[i].get());
    }
  }

  const std::string& file_;
  std::unordered_map<std::string, Dim> symbols_;
  std::vector<Value*> values_;
  size_t nodes_ = 0;
};

}  // namespace

std::vector<std::byte> WriteProgram(const ProgramFile& program) {
  flatbuffers::FlatBufferBuilder b(1 << 16);
  std::vector<Offset<fbs::Entry>> entries;
  for (const auto& g : program.entries) entries.push_back(Writer(b).Entry(*g));
  auto list = b.CreateVector(entries);
  auto weights = b.CreateString(program.weights_sha256), info_sha = b.CreateString(Sha256(program.info)), info = b.CreateString(program.info), digest = b.CreateString(program.digest);
  fbs::FinishProgramBuffer(b, fbs::CreateProgram(b, kVersion, list, weights, info_sha, info, program.digest_seed, digest));
  const auto* p = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  std::vector<std::byte> out(p, p + b.GetSize());
  const std::string sum = Sha256(out);
  out.insert(out.end(), reinterpret_cast<const std::byte*>(sum.data()), reinterpret_cast<const std::byte*>(sum.data()) + sum.size());
  return out;
}

ProgramFile ReadProgram(std::span<const std::byte> bytes, const std::string& name) {
  auto fail = [&](const std::string& problem) { throw Error(ErrorCode::kDataLoss, StrCat("'", name, "' is not a sound program: ", problem)); };
  if (bytes.size() < kDigest + 16) fail("it is too short");
  if (bytes.size() > size_t{1} << 30) fail("it is too large");
  const std::span<const std::byte> body = bytes.first(bytes.size() - kDigest);
  if (!fbs::ProgramBufferHasIdentifier(body.data())) fail("it does not begin as one");
  if (Sha256(body) != std::string_view(reinterpret_cast<const char*>(bytes.data() + body.size()), kDigest)) fail("its checksum is wrong: it was cut off or damaged; save it again or take a copy");
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(body.data()), body.size(), /*max_depth=*/3 * kMaxDepth, /*max_tables=*/1 << 24);
  if (!fbs::VerifyProgramBuffer(verifier)) fail("its structure is damaged");
  const fbs::Program& p = *fbs::GetProgram(body.data());
  if (p.version() > kVersion) fail(StrCat("it has format version ", p.version(), ", this Sinter reads up to ", kVersion));
  if (p.entries() == nullptr || p.entries()->size() == 0 || p.weights_sha256() == nullptr || p.info() == nullptr) fail("it is incomplete");
  ProgramFile program;
  for (const fbs::Entry* e : *p.entries()) program.entries.push_back(Reader(name).Entry(*e));
  program.weights_sha256 = p.weights_sha256()->str();
  program.info = p.info()->str();
  program.digest_seed = p.digest_seed();
  if (p.digest()) program.digest = p.digest()->str();
  return program;
}

}  // namespace sinter::format
