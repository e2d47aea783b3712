#include <cctype>
#include <charconv>
#include <unordered_map>

#include "sinter/graph/graph.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/strings.h"

// Reads the text form that Print writes. Text may be hostile: an Error with its line at worst.
namespace sinter {
namespace {

constexpr int kMaxDepth = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::unique_ptr<Graph> Run() {
    if (text_.size() > size_t{1} << 28) Fail("the text is too long");
    auto g = std::make_unique<Graph>();
    graph_ = g.get();
    Expect("graph");
    g->name = String();
    Expect("numerics");
    const std::string_view numerics = Word();
    bool known = false;
    for (Numerics n : {Numerics::kExact, Numerics::kDefault, Numerics::kFast}) {
      if (numerics != NumericsName(n)) continue;
      g->numerics = n;
      known = true;
    }
    if (!known) Fail(StrCat("the numerics contract is exact, default or fast, not '", numerics, "'"));
    // Types may name symbols that are declared after them.
    const size_t header = at_;
    while (at_ < text_.size() && text_[at_] != '{') SkipToken();
    const size_t body = at_;
    at_ = header;
    ScanSymbols(body);
    at_ = header;
    Header(body);
    Expect("{");
    ReadBlock(g->body, 0);
    Expect("}");
    Skip();
    if (at_ != text_.size()) Fail("something follows the graph");
    g->guards = std::move(guards_);
    Verify(*g);
    return g;
  }

 private:
  [[noreturn]] void Fail(const std::string& problem) {
    int line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) text_[i] == '\n' ? (++line, column = 1) : ++column;
    throw Error(ErrorCode::kInvalidArgument, StrCat("graph text, line ", line, ", column ", column, ": ", problem));
  }

  void Skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool Peek(std::string_view token) {
    Skip();
    return text_.substr(at_).starts_with(token);
  }
  bool Take(std::string_view token) {
    if (!Peek(token)) return false;
    at_ += token.size();
    return true;
  }
  void Expect(std::string_view token) {
    if (!Take(token)) Fail(StrCat("expected '", token, "'"));
  }
  void SkipToken() {
    Skip();
    if (at_ >= text_.size()) return;
    if (text_[at_] == '"') String();
    else ++at_;
  }
  // Up to one of `stop` at bracket depth 0.
  std::string_view Until(std::string_view stop) {
    Skip();
    const size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && stop.find(c) != std::string_view::npos) break;
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (c == '\n' || depth < 0 || depth > 256) Fail("unbalanced brackets");
    }
    return text_.substr(begin, at_ - begin);
  }
  std::string String() {
    Expect("\"");
    std::string s;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n') Fail("a text has no end");
      char c = text_[at_++];
      if (c == '"') return s;
      if (c != '\\') {
        s += c;
        continue;
      }
      if (at_ >= text_.size()) Fail("a text has no end");
      c = text_[at_++];
      if (c == 'n') s += '\n';
      else if (c == 't') s += '\t';
      else if (c == 'r') s += '\r';
      else if (c >= '0' && c <= '3' && at_ + 1 < text_.size()) s += static_cast<char>((c - '0') * 64 + (text_[at_] - '0') * 8 + (text_[at_ + 1] - '0')), at_ += 2;
      else s += c;
    }
  }
  int64_t Integer() {
    Skip();
    int64_t v = 0;
    auto [end, fault] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (fault != std::errc()) Fail("expected an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }
  std::string_view Word() {
    Skip();
    const size_t begin = at_;
    // Names of derived ops contain brackets: tanh.d0[g,y].
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '[') ++depth;
      else if (c == ']') --depth;
      else if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || (depth > 0 && c == ','))) break;
      if (depth < 0) break;
    }
    if (at_ == begin) Fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }

  Dim ReadDim(std::string_view text) {
    return Dim::Parse(text, [&](std::string_view name) {
      auto it = symbols_.find(std::string(name));
      if (it == symbols_.end()) Fail(StrCat("the dimension '", name.substr(0, 64), "' is not declared"));
      return it->second;
    });
  }
  std::vector<Dim> DimList(char open, char close) {
    Expect(std::string_view(&open, 1));
    std::vector<Dim> dims;
    const char stop[] = {',', close, 0};
    if (Take(std::string_view(&close, 1))) return dims;
    do {
      dims.push_back(ReadDim(Until(stop)));
      if (dims.size() > 4096) Fail("too many sizes");
    } while (Take(","));
    Expect(std::string_view(&close, 1));
    return dims;
  }
  DType ReadDType() {
    Skip();
    const size_t begin = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
    std::optional<DType> t = DTypeFromName(text_.substr(begin, at_ - begin));
    if (!t) Fail("expected an element type");
    return *t;
  }
  TensorType Type() {
    TensorType t{ReadDType(), {}};
    for (Dim d : DimList('[', ']')) t.shape.push_back(d);
    if (t.rank() > kMaxRank) Fail("too many dimensions");
    return t;
  }
  std::string NewName() {
    Expect("%");
    return StrCat("%", Integer());
  }
  Value* Use() {
    const std::string name = NewName();
    auto it = values_.find(name);
    if (it == values_.end()) Fail(StrCat(name, " is not defined"));
    return it->second;
  }
  void Define(const std::string& name, Value* v) {
    if (!values_.emplace(name, v).second) Fail(StrCat(name, " is defined twice"));
  }

  void ScanSymbols(size_t end) {
    while (at_ < end) {
      if (!Peek("dim(")) {
        SkipToken();
        continue;
      }
      Expect("dim(");
      const std::string name(Word());
      Dim::Facts f;
      Expect("in");
      Expect("[");
      f.min = Integer();
      Expect(",");
      f.max = Integer();
      Expect("]");
      Expect("multiple");
      f.multiple_of = Integer();
      Expect(")");
      if (!symbols_.emplace(name, Dim::Symbol(name, f)).second) Fail("a dimension is declared twice");
    }
  }

  void Header(size_t) {
    Expect("(");
    while (!Take(")")) {
      const std::string name = NewName();
      const std::string arg = String();
      Expect(":");
      Define(name, graph_->AddArg(Type(), arg));
      Take(",");
    }
    while (!Peek("outputs")) {
      if (Take("state(")) {
        const std::string name = NewName();
        const std::string state = String();
        Expect(":");
        TensorType t = Type();
        const bool trainable = Take("trainable");
        Define(name, graph_->AddState(std::move(t), state, trainable));
        if (Take("result")) graph_->states.back().result = static_cast<int>(Integer());
        Expect(")");
      } else if (Take("dim(")) {
        while (!Take(")")) SkipToken();
      } else if (Take("guard(")) {
        const int64_t op = Integer();
        if (op < 0 || op > DimCond::kDivisible) Fail("an unknown kind of guard");
        Expect(",");
        Dim a = ReadDim(Until(","));
        Expect(",");
        Dim b = ReadDim(Until(","));
        Expect(",");
        guards_.push_back({{static_cast<DimCond::Op>(op), a, b}, String(), ""});
        Expect(")");
      } else {
        Fail("expected state, dim, guard or outputs");
      }
    }
    Expect("outputs");
    graph_->num_outputs = static_cast<int>(Integer());
  }

  AttrValue Attr() {
    Skip();
    if (at_ >= text_.size()) Fail("expected a value");
    const char c = text_[at_];
    if (Take("true")) return true;
    if (Take("false")) return false;
    if (c == '"') return String();
    if (c == '<') {
      Expect("<");
      std::vector<Dim> dims;
      if (Take(">")) return dims;
      do dims.push_back(ReadDim(Until(",>")));
      while (Take(","));
      Expect(">");
      return dims;
    }
    if (c == '(') {
      Expect("(");
      Dim d = ReadDim(Until(")"));
      Expect(")");
      return d;
    }
    if (c == '[') {
      Expect("[");
      std::vector<int64_t> v;
      if (Take("]")) return v;
      do v.push_back(Integer());
      while (Take(","));
      Expect("]");
      return v;
    }
    if (Take("tensor(")) return Literal();
    if (std::isalpha(static_cast<unsigned char>(c)) && !Peek("inf") && !Peek("nan")) return ReadDType();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || std::string_view("+-.").find(text_[at_]) != std::string_view::npos)) ++at_;
    const std::string number(text_.substr(begin, at_ - begin));
    if (number.find_first_of(".einfa") == std::string::npos) {
      at_ = begin;
      return Integer();
    }
    char* end = nullptr;
    const double v = std::strtod(number.c_str(), &end);
    if (end != number.c_str() + number.size() || number.empty()) Fail("expected a number");
    return v;
  }

  TensorLiteral Literal() {
    TensorLiteral l{ReadDType(), {}, nullptr};
    for (Dim d : DimList('[', ']')) {
      if (!d.is_const() || d.value() < 0) Fail("a constant has a fixed shape");
      l.shape.push_back(d.value());
    }
    Expect("0x");
    auto bytes = std::make_shared<std::vector<std::byte>>();
    auto digit = [&](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
    while (at_ + 1 < text_.size() && digit(text_[at_]) >= 0) {
      const int high = digit(text_[at_]), low = digit(text_[at_ + 1]);
      if (low < 0) Fail("an odd number of digits");
      bytes->push_back(static_cast<std::byte>(high * 16 + low));
      at_ += 2;
    }
    Expect(")");
    if (static_cast<uint64_t>(NumElements(l.shape)) != bytes->size() / static_cast<size_t>(ItemSize(l.dtype)) || bytes->size() % static_cast<size_t>(ItemSize(l.dtype)) != 0)
      Fail("a constant has another number of bytes than its shape says");
    l.bytes = std::move(bytes);
    return l;
  }

  void ReadBlock(Block& block, int depth) {
    if (depth > kMaxDepth) Fail("regions are nested too deeply");
    while (!Take("return")) ReadNode(block, depth);
    if (!Peek("}")) {
      do block.results.push_back(Use());
      while (Take(","));
    }
  }

  void ReadNode(Block& block, int depth) {
    std::vector<std::string> names;
    do names.push_back(NewName());
    while (Take(","));
    Expect("=");
    const OpDef& op = GetOp(Word());
    Expect("(");
    std::vector<Value*> inputs;
    if (!Take(")")) {
      do inputs.push_back(Use());
      while (Take(","));
      Expect(")");
    }
    std::vector<AttrField> fields;
    if (Take("{")) {
      do {
        AttrField f{std::string(Word()), {}};
        Expect("=");
        f.value = Attr();
        fields.push_back(std::move(f));
      } while (Take(","));
      Expect("}");
    }
    AttrPtr attrs = fields.empty() ? nullptr : op.parse_attrs(fields);
    Expect(":");
    std::vector<TensorType> types;
    do types.push_back(Type());
    while (Take(","));
    Node* n = nullptr;
    const bool loop = &op == &DefOf<ops::While>();
    if (loop || &op == &DefOf<ops::If>()) {
      if (!loop && inputs.size() != 1) Fail("an `if` has one predicate");
      n = loop ? graph_->AddWhile(block, inputs) : graph_->AddIf(block, inputs[0], types);
      n->attrs = op.AttrsOrDefault(attrs);
      for (auto& region : n->regions) {
        Expect("(");
        size_t k = 0;
        while (!Take(")")) {
          const std::string name = NewName();
          Expect(":");
          TensorType t = Type();
          if (k >= region->params.size() || !(region->params[k]->type == t)) Fail("a region's parameter has another type than what is carried");
          Define(name, region->params[k++].get());
          Take(",");
        }
        if (k != region->params.size()) Fail("a region has another number of parameters");
        Expect("{");
        ReadBlock(*region, depth + 1);
        Expect("}");
      }
    } else {
      n = graph_->AddNode(block, op, attrs, std::move(inputs));
    }
    if (n->outputs.size() != names.size() || types.size() != names.size()) Fail(StrCat("'", op.name, "' has another number of results"));
    for (size_t i = 0; i < names.size(); ++i) {
      if (!(n->outputs[i]->type == types[i])) Fail(StrCat("result ", i, " of '", op.name, "' is ", TypeToString(n->outputs[i]->type), ", not ", TypeToString(types[i])));
      Define(names[i], n->outputs[i].get());
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  Graph* graph_ = nullptr;
  std::unordered_map<std::string, Dim> symbols_;
  std::unordered_map<std::string, Value*> values_;
  std::vector<GuardedCond> guards_;
};

}  // namespace

std::unique_ptr<Graph> Parse(std::string_view text) { return Parser(text).Run(); }

}  // namespace sinter
