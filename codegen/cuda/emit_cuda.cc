#include "sinter/codegen/cuda/emit_cuda.h"

#include <algorithm>
#include <unordered_map>

#include "sinter/codegen/cuda/cuda_text.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/codegen/interpret_ops.h"
#include "sinter/graph/error.h"
#include "sinter/graph/numerics.h"
#include "sinter/graph/strings.h"

namespace sinter::codegen::cuda {
namespace {

// Lanes of the reduction tree that a block works on at once.
constexpr int kSharedLanes = 256;

// A loop that code can be put in front of: the kernel's point, a stage's inner point, or a reduction's turn.
struct Scope {
  std::vector<int> vars;
  std::string code;
  std::unordered_map<Expr, std::string, ExprHash> names;
};

class Emitter {
 public:
  explicit Emitter(const Kernel& k) : k_(k), sizes_(k.RuntimeSizes()) {}

  CudaSource Run() {
    VerifyKernel(k_);
    CudaSource s{"sinter_kernel"};
    // A row for a block where stages run over inner loops or long reductions; else a point for a thread.
    block_rows_ = std::any_of(k_.stages.begin(), k_.stages.end(),
                              [](const KernelStage& st) { return !st.inner.empty() || st.vector == VectorAxis::kReduction; });
    if (block_rows_) s.points_per_block = 1;
    std::string body;
    for (const KernelStage& st : k_.stages) StrAppend(&body, Stage(st));
    s.text = kPrelude;
    if (!k_.name.empty()) StrAppend(&s.text, "\n// ", k_.name, "\n");
    for (size_t i = 0; i < k_.sources.size() && i < 1; ++i) StrAppend(&s.text, LineOf(k_.sources[i]));
    StrAppend(&s.text, "extern \"C\" __global__ void __launch_bounds__(256) ", s.name,
              "(void* const* buffers, const i64* sizes, i64 begin, i64 end, char* scratch, i64 scratch_stride) {\n");
    if (body.find("*)shared;") != std::string::npos) StrAppend(&s.text, "  __shared__ double shared[", kSharedLanes, "];\n");
    for (size_t b = 0; b < k_.buffers.size(); ++b)
      if (k_.buffers[b].role != BufferRole::kLocal)
        StrAppend(&s.text, "  ", TypeName(k_.buffers[b].dtype), "* b", b, " = (", TypeName(k_.buffers[b].dtype), "*)buffers[", b, "];\n");
    const char* worker = block_rows_ ? "(i64)blockIdx.x" : "(i64)blockIdx.x * blockDim.x + threadIdx.x";
    const char* workers = block_rows_ ? "(i64)gridDim.x" : "(i64)gridDim.x * blockDim.x";
    if (std::any_of(k_.buffers.begin(), k_.buffers.end(), [](const KernelBuffer& b) { return b.role == BufferRole::kLocal; }))
      StrAppend(&s.text, "  char* local = scratch + (", worker, ") * scratch_stride;\n");
    std::string offset = "0";
    for (size_t b = 0; b < k_.buffers.size(); ++b) {
      if (k_.buffers[b].role != BufferRole::kLocal) continue;
      StrAppend(&s.text, "  ", TypeName(k_.buffers[b].dtype), "* b", b, " = (", TypeName(k_.buffers[b].dtype), "*)(local + ", offset, ");\n");
      StrAppend(&offset, " + ((", SizeText(NumElements(k_.buffers[b].shape)), ") * ", ItemSize(k_.buffers[b].dtype), " + 63) / 64 * 64");
    }
    StrAppend(&s.text, "  for (i64 point = begin + ", worker, "; point < end; point += ", workers, ") {\n");
    std::string rest = "point";
    for (size_t i = k_.outer.size(); i-- > 0;) {
      const std::string extent = DivisorText(k_.outer[i].extent);
      if (i == 0)
        StrAppend(&s.text, "    const i64 v", Var(k_.outer[i].id), " = ", rest, ";\n");
      else
        StrAppend(&s.text, "    const i64 v", Var(k_.outer[i].id), " = ", rest, " % ", extent, ";\n    const i64 q", i, " = ", rest, " / ", extent,
                  ";\n");
      rest = StrCat("q", i);
    }
    StrAppend(&s.text, body, "  }\n}\n");
    return s;
  }

 private:
  // "model.cpp:42" as a directive, so that faults in the kernel are reported at the user's line.
  static std::string LineOf(const std::string& source) {
    const size_t colon = source.rfind(':');
    if (colon == std::string::npos || source.find_first_not_of("0123456789", colon + 1) != std::string::npos || colon + 1 == source.size()) return "";
    return StrCat("#line ", source.substr(colon + 1), " \"", source.substr(0, colon), "\"\n");
  }

  int Var(int id) { return vars_.emplace(id, static_cast<int>(vars_.size())).first->second; }

  // Where a constant extent is zero the loop never runs; the compiler should not see a division by zero.
  std::string DivisorText(Dim d) { return d == Dim(0) ? "1ll" : SizeText(d); }

  std::string SizeText(Dim d) {
    if (d.is_const()) return StrCat(d.value(), "ll");
    auto it = std::find(sizes_.begin(), sizes_.end(), d);
    if (it != sizes_.end()) return StrCat("sizes[", it - sizes_.begin(), "]");
    // Products of sizes that are arguments.
    std::string product;
    for (const KernelBuffer& b : k_.buffers) {
      if (!(NumElements(b.shape) == d)) continue;
      for (Dim e : b.shape) StrAppend(&product, product.empty() ? "" : " * ", SizeText(e));
      return product;
    }
    SINTER_CHECK(false, "a size that is no argument: " + d.ToString());
    return "";
  }

  std::string Stage(const KernelStage& st) {
    Scope point, inner;
    for (const LoopVar& l : k_.outer) point.vars.push_back(l.id);
    for (const LoopVar& l : st.inner) inner.vars.push_back(l.id);
    chain_ = {&point};
    if (!st.inner.empty()) chain_.push_back(&inner);
    Scope& target = *chain_.back();
    std::string stores;
    const std::string indent(st.inner.empty() ? 4 : 6, ' ');
    for (const KernelStore& store : st.stores) {
      const DType t = k_.buffers[static_cast<size_t>(store.buffer)].dtype;
      const std::string value = Name(store.value), at = Offset(store.buffer, store.position);
      std::string converted =
          IsFloating(ComputeType(t)) && ComputeType(t) == t ? StrCat("s_canon(", value, ")") : ConvertText(ComputeType(t), t, value);
      StrAppend(&stores, indent, "b", store.buffer, "[", at, "] = ", converted, ";\n");
    }
    std::string text = "    {\n" + point.code;
    if (st.inner.empty()) {
      // Where a block has a row, one thread computes its scalars and the others wait.
      StrAppend(&text, block_rows_ ? StrCat("    if (threadIdx.x == 0) {\n", stores, "    }\n") : stores);
    } else {
      std::string total;
      for (const LoopVar& l : st.inner) StrAppend(&total, total.empty() ? "" : " * ", SizeText(l.extent));
      StrAppend(&text, "    for (i64 j = threadIdx.x; j < ", total, "; j += blockDim.x) {\n");
      std::string rest = "j";
      for (size_t i = st.inner.size(); i-- > 0;) {
        const std::string extent = DivisorText(st.inner[i].extent);
        if (i == 0)
          StrAppend(&text, "      const i64 v", Var(st.inner[i].id), " = ", rest, ";\n");
        else
          StrAppend(&text, "      const i64 v", Var(st.inner[i].id), " = ", rest, " % ", extent, ";\n      const i64 w", i, " = ", rest, " / ",
                    extent, ";\n");
        rest = StrCat("w", i);
      }
      StrAppend(&text, target.code, stores, "    }\n");
    }
    // Later stages read what this one stored, and the next point stores where they read.
    StrAppend(&text, "    }\n", block_rows_ && k_.stages.size() > 1 ? "    __syncthreads();\n" : "");
    return text;
  }

  std::string Offset(int buffer, std::span<const Expr> position) {
    const KernelBuffer& b = k_.buffers[static_cast<size_t>(buffer)];
    std::string at;
    for (int d : b.order) {
      const std::string p = Name(position[static_cast<size_t>(d)]);
      at = at.empty() ? p : StrCat("(", at, ") * ", SizeText(b.shape[static_cast<size_t>(d)]), " + ", p);
    }
    return at.empty() ? "0" : at;
  }

  // The name of a value, defined in the scope where all it depends on is known.
  std::string Name(const Expr& e) {
    const ExprNode& n = *e;
    if (n.kind == ExprKind::kConst) return ConstantText(n.dtype, n.bits);
    if (n.kind == ExprKind::kIndex) return StrCat("v", Var(n.index));
    if (n.kind == ExprKind::kSize) return SizeText(n.dim);
    const size_t level = Level(e);
    Scope& scope = *chain_[level];
    if (auto it = scope.names.find(e); it != scope.names.end()) return it->second;
    // Operands first: they may add code to this scope.
    std::vector<Scope*> saved(chain_.begin() + static_cast<int64_t>(level) + 1, chain_.end());
    chain_.resize(level + 1);
    std::string text = n.kind == ExprKind::kReduce ? Reduce(e) : Text(n);
    const std::string name = StrCat("t", next_++);
    StrAppend(&scope.code, std::string(4 + 2 * level, ' '), "const ", TypeName(n.dtype), " ", name, " = ", text, ";\n");
    chain_.insert(chain_.end(), saved.begin(), saved.end());
    scope.names.emplace(e, name);
    return name;
  }
  // The innermost scope that `e` depends on.
  size_t Level(const Expr& e) {
    std::vector<int> free;
    FreeOnce(e, free);
    size_t level = 0;
    for (int v : free)
      for (size_t i = 0; i < chain_.size(); ++i)
        if (std::find(chain_[i]->vars.begin(), chain_[i]->vars.end(), v) != chain_[i]->vars.end()) level = std::max(level, i);
    return level;
  }
  void FreeOnce(const Expr& e, std::vector<int>& out) {
    auto it = free_.find(e.get());
    if (it == free_.end()) {
      std::vector<int> mine;
      if (e.kind() == ExprKind::kIndex) mine.push_back(e->index);
      for (const Expr& a : e->args) {
        std::vector<int> inner;
        FreeOnce(a, inner);
        for (int v : inner)
          if (std::find(mine.begin(), mine.end(), v) == mine.end()) mine.push_back(v);
      }
      for (const LoopVar& l : e->loops) std::erase(mine, l.id);
      it = free_.emplace(e.get(), std::move(mine)).first;
    }
    out = it->second;
  }

  std::string Text(const ExprNode& n) {
    std::vector<std::string> a;
    if (n.kind != ExprKind::kLoad)
      for (const Expr& x : n.args) a.push_back(Name(x));
    const bool floating = !n.args.empty() && IsFloating(n.args[0].dtype());
    const bool is_bool = !n.args.empty() && n.args[0].dtype() == kBool;
    const bool f64 = !n.args.empty() && n.args[0].dtype() == kFloat64;
    auto infix = [&](const char* op) { return StrCat(a[0], " ", op, " ", a[1]); };
    auto call = [&](const char* f) { return a.size() == 1 ? StrCat(f, "(", a[0], ")") : StrCat(f, "(", a[0], ", ", a[1], ")"); };
    switch (n.kind) {
      case ExprKind::kLoad: {
        const size_t rank = n.args.size() - n.predicated;
        const std::string at = Offset(n.index, std::span<const Expr>(n.args).first(rank));
        if (!n.predicated) return StrCat("b", n.index, "[", at, "]");
        return StrCat(Name(n.args.back()), " ? b", n.index, "[", at, "] : (", TypeName(n.dtype), ")0");
      }
      case ExprKind::kNeg:
        return floating ? StrCat("-", a[0]) : StrCat("s_sub((", TypeName(n.dtype), ")0, ", a[0], ")");
      case ExprKind::kAbs:
        return floating ? call(f64 ? "fabs" : "fabsf") : call("s_abs");
      case ExprKind::kNot:
        return is_bool ? StrCat("!", a[0]) : StrCat("~", a[0]);
      case ExprKind::kFloor:
        return call(f64 ? "floor" : "floorf");
      case ExprKind::kCeil:
        return call(f64 ? "ceil" : "ceilf");
      case ExprKind::kTrunc:
        return call(f64 ? "trunc" : "truncf");
      case ExprKind::kRound:
        return call(f64 ? "rint" : "rintf");
      case ExprKind::kSqrt:
        return call(f64 ? "sqrt" : "sqrtf");
      case ExprKind::kIsNan:
        return StrCat(a[0], " != ", a[0]);
      case ExprKind::kBitcast:
        switch (n.dtype) {
          case DType::kInt32:
            return call("__float_as_int");
          case DType::kInt64:
            return call("__double_as_longlong");
          case DType::kFloat32:
            return call("__int_as_float");
          default:
            return call("__longlong_as_double");
        }
      case ExprKind::kConvert:
        return ConvertText(n.args[0].dtype(), n.dtype, a[0]);
      case ExprKind::kAdd:
        return floating ? infix("+") : is_bool ? infix("||") : call("s_add");
      case ExprKind::kSub:
        return floating ? infix("-") : call("s_sub");
      case ExprKind::kMul:
        return floating ? infix("*") : is_bool ? infix("&&") : call("s_mul");
      case ExprKind::kDiv:
        return floating ? infix("/") : call("s_div");
      case ExprKind::kRem:
        return call("s_rem");
      case ExprKind::kFloorDiv:
        return call("s_floordiv");
      case ExprKind::kFloorMod:
        return call("s_floormod");
      case ExprKind::kMin:
        return is_bool ? infix("&&") : call("s_min");
      case ExprKind::kMax:
        return is_bool ? infix("||") : call("s_max");
      case ExprKind::kAnd:
        return is_bool ? infix("&&") : infix("&");
      case ExprKind::kOr:
        return is_bool ? infix("||") : infix("|");
      case ExprKind::kXor:
        return is_bool ? infix("!=") : infix("^");
      case ExprKind::kShl:
        return call("s_shl");
      case ExprKind::kShr:
        return call("s_shr");
      case ExprKind::kShrLogical:
        return call("s_shrl");
      case ExprKind::kLt:
        return is_bool ? StrCat("!", a[0], " && ", a[1]) : infix("<");
      case ExprKind::kLe:
        return is_bool ? StrCat("!", a[0], " || ", a[1]) : infix("<=");
      case ExprKind::kEq:
        return infix("==");
      case ExprKind::kNe:
        return infix("!=");
      case ExprKind::kFma:
        return StrCat(n.dtype == kFloat64 ? "fma(" : "fmaf(", a[0], ", ", a[1], ", ", a[2], ")");
      case ExprKind::kSelect:
        return StrCat(a[0], " ? ", a[1], " : ", a[2]);
      default:
        SINTER_CHECK(false, "no such expression in a kernel");
    }
    return "";
  }

  // A reduction, by one thread or, of a row, by the block. Code goes to the current scope.
  std::string Reduce(const Expr& e) {
    const size_t level = chain_.size() - 1;
    const std::string in(4 + 2 * level, ' ');
    const int id = next_++;
    const char* type = TypeName(e.dtype());
    const DType t = e.dtype();
    Scope body;
    for (const LoopVar& l : e->loops) body.vars.push_back(l.id);
    chain_.push_back(&body);
    const std::string value = Name(e->args[0]), value2 = e->args.size() > 1 ? Name(e->args[1]) : "";
    chain_.pop_back();
    std::string loops;
    for (const LoopVar& l : e->loops)
      StrAppend(&loops, in, "for (i64 v", Var(l.id), " = 0; v", Var(l.id), " < ", SizeText(l.extent), "; ++v", Var(l.id), ") ");
    StrAppend(&loops, "{\n", body.code);
    std::string& code = chain_.back()->code;
    if (e->reduce == ReduceKind::kContract) {
      StrAppend(&code, in, type, " acc", id, " = 0, sum", id, " = 0; i64 k", id, " = 0;\n", loops);
      const std::string acc = StrCat("acc", id);
      const std::string step = IsFloating(t) ? StrCat(t == kFloat64 ? "fma(" : "fmaf(", value, ", ", value2, ", ", acc, ")")
                                             : StrCat("s_add(", acc, ", s_mul(", value, ", ", value2, "))");
      const std::string add = IsFloating(t) ? StrCat("sum", id, " + ", acc) : StrCat("s_add(sum", id, ", ", acc, ")");
      StrAppend(&code, in, "  ", acc, " = ", step, ";\n", in, "  if (++k", id, " % ", kContractionBlock, " == 0) { sum", id, " = k", id,
                " == ", kContractionBlock, " ? ", acc, " : ", add, "; ", acc, " = 0; }\n", in, "}\n");
      StrAppend(&code, in, "if (k", id, " % ", kContractionBlock, " != 0) sum", id, " = k", id, " < ", kContractionBlock, " ? ", acc, " : ", add,
                ";\n");
      return StrCat("sum", id);
    }
    return block_rows_ && level == 0 ? ReduceByBlock(e, id, body.code, value) : ReduceByThread(e, id, loops, value);
  }

  // The canonical tree, by one thread: the same additions in the same order as everywhere.
  std::string ReduceByThread(const Expr& e, int id, const std::string& loops, const std::string& value) {
    const std::string in(2 + 2 * chain_.size(), ' '), lanes = StrCat("lane", id), identity = Identity(e);
    std::string& code = chain_.back()->code;
    const std::string clear = StrCat("for (int l = 0; l < ", kReduceLanes, "; ++l) ", lanes, "[l] = ", identity, ";\n");
    StrAppend(&code, in, TypeName(e.dtype()), " ", lanes, "[", kReduceLanes, "]; i64 k", id, " = 0;\n", StackText(e, id, in), in, clear, loops);
    const std::string lane = StrCat(lanes, "[k", id, " % ", kReduceLanes, "]");
    StrAppend(&code, in, "  ", lane, " = ", CombineText(e->reduce, e.dtype(), lane, value), ";\n");
    StrAppend(&code, in, "  if (++k", id, " % ", kReduceBlock, " == 0) {\n", FoldText(e, id, in + "    "), in, "    ", clear, in, "  }\n", in, "}\n");
    StrAppend(&code, in, "if (k", id, " % ", kReduceBlock, " != 0) {\n", FoldText(e, id, in + "  "), in, "}\n", CollapseText(e, id, in));
    return ResultText(e, id);
  }

  // The same tree by all threads of a block: each lane of up to 16 blocks of the tree at once is one thread's, and what combines lanes
  // is little work that all do.
  std::string ReduceByBlock(const Expr& e, int id, const std::string& body, const std::string& value) {
    const std::string in(4, ' '), shared = StrCat("shared", id), lanes = StrCat("lane", id), type = TypeName(e.dtype()), k = StrCat("k", id);
    constexpr int kBlocks = kSharedLanes / kReduceLanes;
    std::string turns, vars, rest = "r";
    for (const LoopVar& l : e->loops) StrAppend(&turns, turns.empty() ? "" : " * ", SizeText(l.extent));
    for (size_t i = e->loops.size(); i-- > 0;) {
      const std::string extent = DivisorText(e->loops[i].extent), var = StrCat("const i64 v", Var(e->loops[i].id), " = ");
      StrAppend(&vars, in, "    ", var, rest, i == 0 ? "" : " % " + extent, ";\n");
      if (i > 0) StrAppend(&vars, in, "    const i64 u", i, " = ", rest, " / ", extent, ";\n");
      rest = StrCat("u", i);
    }
    std::string& code = chain_.back()->code;
    StrAppend(&code, in, type, "* ", shared, " = (", type, "*)shared; const i64 ", k, " = ", turns, ";\n", StackText(e, id, in));
    StrAppend(&code, in, "for (i64 base = 0; base < ", k, "; base += ", kBlocks * kReduceBlock, ") {\n");
    StrAppend(&code, in, "  for (int s = threadIdx.x; s < ", kSharedLanes, "; s += blockDim.x) {\n", in, "    ", type, " acc = ", Identity(e),
              "; const i64 from = base + s / ", kReduceLanes, " * ", kReduceBlock, ";\n");
    StrAppend(&code, in, "    for (i64 r = from + s % ", kReduceLanes, "; r < ", k, " && r < from + ", kReduceBlock, "; r += ", kReduceLanes, ") {\n",
              vars, body, in, "    acc = ", CombineText(e->reduce, e.dtype(), "acc", value), ";\n", in, "    }\n", in, "    ", shared, "[s] = acc;\n",
              in, "  }\n", in, "  __syncthreads();\n");
    StrAppend(&code, in, "  for (int b = 0; b < ", kBlocks, " && base + b * ", kReduceBlock, " < ", k, "; ++b) {\n", in, "    ", type, " ", lanes,
              "[", kReduceLanes, "];\n", in, "    for (int l = 0; l < ", kReduceLanes, "; ++l) ", lanes, "[l] = ", shared, "[b * ", kReduceLanes,
              " + l];\n", FoldText(e, id, in + "    "), in, "  }\n", in, "  __syncthreads();\n", in, "}\n", CollapseText(e, id, in));
    return ResultText(e, id);
  }

  static std::string Identity(const Expr& e) { return ConstantText(e.dtype(), ReduceIdentity(e->reduce, e.dtype())); }
  // Results of blocks of the tree that wait for their pair.
  static std::string StackText(const Expr& e, int id, const std::string& in) {
    return StrCat(in, TypeName(e.dtype()), " part", id, "[48]; int depth", id, " = 0; i64 block", id, " = 0;\n");
  }
  static std::string PairText(const Expr& e, int id) {
    const std::string left = StrCat("part", id, "[depth", id, " - 2]");
    return StrCat(left, " = ", CombineText(e->reduce, e.dtype(), left, StrCat("part", id, "[depth", id, " - 1]")), ";\n");
  }
  static std::string FoldText(const Expr& e, int id, const std::string& in) {
    const std::string lanes = StrCat("lane", id);
    return StrCat(in, "for (int h = ", kReduceLanes / 2, "; h > 0; h /= 2) for (int l = 0; l < h; ++l) ", lanes,
                  "[l] = ", CombineText(e->reduce, e.dtype(), lanes + "[l]", lanes + "[l + h]"), ";\n", in, "part", id, "[depth", id, "++] = ", lanes,
                  "[0];\n") +
           StrCat(in, "for (i64 c = block", id, "++; c & 1; c >>= 1, --depth", id, ") ", PairText(e, id));
  }
  static std::string CollapseText(const Expr& e, int id, const std::string& in) {
    return StrCat(in, "for (; depth", id, " > 1; --depth", id, ") ", PairText(e, id));
  }
  static std::string ResultText(const Expr& e, int id) {
    return StrCat("k", id, " == 0 ? ", e->reduce == ReduceKind::kSum ? ConstantText(e.dtype(), 0) : Identity(e), " : part", id, "[0]");
  }

  const Kernel& k_;
  std::vector<Dim> sizes_;
  bool block_rows_ = false;
  std::vector<Scope*> chain_;
  std::unordered_map<const ExprNode*, std::vector<int>> free_;
  std::unordered_map<int, int> vars_;
  int next_ = 0;
};

}  // namespace

CudaSource EmitCuda(const Kernel& kernel) { return Emitter(kernel).Run(); }

}  // namespace sinter::codegen::cuda
