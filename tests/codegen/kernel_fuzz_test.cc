#include <gtest/gtest.h>

#include "sinter/tests/codegen/kernel_runner.h"
#include "sinter/codegen/cpu/compile_kernel.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/cpu_info.h"

// Random kernels: the compiled code gives the bits of the interpreter.
namespace sinter::codegen::testing {
namespace {

Expr I(int64_t v) { return Expr::ConstInt(kInt64, v); }

class RandomKernel {
 public:
  RandomKernel(unsigned seed, Dim n) : rng_(seed), n_(n) {}

  Kernel Make() {
    for (DType t : {kFloat32, kFloat64, kInt32, kInt64, kBool, kFloat16, kInt8}) {
      Buffer(t, {n_, 6}, BufferRole::kInput);
      Buffer(t, {6}, BufferRole::kInput);
    }
    i_ = Loop(k_.outer, n_);
    KernelStage stage;
    stage.vector = static_cast<VectorAxis>(Pick(4));
    if (Pick(2)) {
      j_ = Loop(stage.inner, 6);
    } else {
      j_ = Loop(k_.outer, 6);
    }
    at_ = {i_, j_};
    const int stores = 1 + Pick(3);
    for (int s = 0; s < stores; ++s) {
      const DType t = kCompute[Pick(5)];
      pool_.clear();
      const int out = Buffer(t, {n_, 6}, BufferRole::kOutput);
      for (int step = 0; step < 14; ++step) Grow(true);
      stage.stores.push_back({out, at_, Some(t)});
    }
    k_.stages.push_back(std::move(stage));
    k_.name = "fuzz";
    return std::move(k_);
  }

 private:
  static constexpr DType kCompute[] = {kFloat32, kFloat64, kInt32, kInt64, kBool};
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }

  int Buffer(DType t, SymShape shape, BufferRole role) {
    std::vector<int> order;
    for (size_t d = 0; d < shape.size(); ++d) order.push_back(static_cast<int>(d));
    if (shape.size() == 2 && Pick(4) == 0) std::swap(order[0], order[1]);
    k_.buffers.push_back({t, std::move(shape), std::move(order), role});
    return static_cast<int>(k_.buffers.size()) - 1;
  }
  Expr Loop(std::vector<LoopVar>& loops, Dim extent) {
    loops.push_back({FreshIndex(), extent});
    return Expr::Index(loops.back().id);
  }

  // A value of type t from the pool, or a new leaf.
  Expr Some(DType t) {
    std::vector<Expr> fit;
    for (const Expr& e : pool_)
      if (e.dtype() == t) fit.push_back(e);
    if (fit.empty() || Pick(5) == 0) return Leaf(t);
    // The newest ones are the deepest.
    return fit[fit.size() - 1 - static_cast<size_t>(Pick(static_cast<int>(std::min<size_t>(fit.size(), 4))))];
  }

  Expr Leaf(DType t) {
    const int kind = Pick(8);
    if (kind == 0) return IsFloating(t) ? Expr::Const(t, Pick(9) - 4.25) : t == kBool ? Expr::Bool(Pick(2)) : Expr::ConstInt(t, Pick(9) - 4);
    if (kind == 1) return Expr::Convert(at_[Pick(2)] + Expr::Size(n_), t);
    std::vector<int> fit;
    for (size_t b = 0; b < k_.buffers.size(); ++b)
      if (k_.buffers[b].role == BufferRole::kInput && (ComputeType(k_.buffers[b].dtype) == t || Pick(6) == 0)) fit.push_back(static_cast<int>(b));
    return Expr::Convert(Load(fit[Pick(static_cast<int>(fit.size()))]), t);
  }

  Expr Load(int b) {
    const DType t = k_.buffers[b].dtype;
    Expr row = at_[0], column = at_[1], load;
    if (k_.buffers[b].shape.size() == 1) {
      if (Pick(3) == 0) column = Expr::Binary(ExprKind::kFloorMod, Some(kInt64), I(6));
      load = Expr::Load(b, t, {column});
    } else if (const int how = Pick(5); how == 0) {
      row = row + I(Pick(5) - 2);
      load = Expr::LoadIf(b, t, {row, column}, (row >= I(0)) & (row < Expr::Size(n_)));
    } else if (how == 1) {
      column = column + at_[1] - I(3);
      load = Expr::LoadIf(b, t, {row, column}, (column >= I(0)) & (column < I(6)));
    } else {
      if (how == 2) row = Expr::Size(n_) - I(1) - row;
      load = Expr::Load(b, t, {row, column});
    }
    return Expr::Convert(load, ComputeType(t));
  }

  void Grow(bool reduce) {
    const DType t = kCompute[Pick(5)];
    const bool f = IsFloating(t);
    const int what = Pick(reduce ? 10 : 9);
    if (what <= 3 && t != kBool) {
      std::vector<ExprKind> kinds = {ExprKind::kAdd, ExprKind::kSub, ExprKind::kMul, ExprKind::kDiv, ExprKind::kMin, ExprKind::kMax};
      if (!f) kinds.insert(kinds.end(), {ExprKind::kRem, ExprKind::kFloorDiv, ExprKind::kFloorMod, ExprKind::kAnd, ExprKind::kOr, ExprKind::kXor, ExprKind::kShl, ExprKind::kShr, ExprKind::kShrLogical});
      pool_.push_back(Expr::Binary(kinds[Pick(static_cast<int>(kinds.size()))], Some(t), Some(t)));
    } else if (what <= 3) {
      const ExprKind kinds[] = {ExprKind::kAnd, ExprKind::kOr, ExprKind::kXor, ExprKind::kEq};
      pool_.push_back(Expr::Binary(kinds[Pick(4)], Some(t), Some(t)));
    } else if (what == 4) {
      const ExprKind kinds[] = {ExprKind::kLt, ExprKind::kLe, ExprKind::kEq, ExprKind::kNe};
      pool_.push_back(Expr::Binary(kinds[Pick(4)], Some(t), Some(t)));
    } else if (what == 5) {
      std::vector<ExprKind> kinds = {ExprKind::kNot};
      if (t != kBool) kinds = {ExprKind::kNeg, ExprKind::kAbs};
      if (f) kinds.insert(kinds.end(), {ExprKind::kFloor, ExprKind::kCeil, ExprKind::kTrunc, ExprKind::kRound, ExprKind::kSqrt, ExprKind::kIsNan});
      pool_.push_back(Expr::Unary(kinds[Pick(static_cast<int>(kinds.size()))], Some(t)));
    } else if (what == 6) {
      pool_.push_back(f ? Expr::Fma(Some(t), Some(t), Some(t)) : Expr::Select(Some(kBool), Some(t), Some(t)));
    } else if (what == 7) {
      pool_.push_back(Expr::Select(Some(kBool), Some(t), Some(t)));
    } else if (what == 8) {
      const DType through[] = {kFloat16, kBFloat16, kInt8, kUInt8, kFloat32, kInt64};
      pool_.push_back(Expr::Convert(Expr::Convert(Some(kCompute[Pick(5)]), through[Pick(6)]), t));
    } else {
      Reduction(t);
    }
  }

  // A reduction whose body reads with its own variables.
  void Reduction(DType t) {
    const std::vector<Expr> at = at_, pool = pool_;
    std::vector<LoopVar> loops;
    if (const int shape = Pick(3); shape == 0) {
      at_[1] = Loop(loops, 6);
    } else if (shape == 1) {
      at_[0] = Loop(loops, n_);
    } else {
      at_[0] = Loop(loops, n_);
      at_[1] = Loop(loops, 6);
    }
    for (int step = 0; step < 3; ++step) Grow(false);
    const ReduceKind arithmetic[] = {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kContract};
    const ReduceKind logic[] = {ReduceKind::kAny, ReduceKind::kAll};
    const ReduceKind kind = t == kBool ? logic[Pick(2)] : arithmetic[Pick(5)];
    std::vector<Expr> body = {Some(t)};
    if (kind == ReduceKind::kContract) body.push_back(Some(t));
    Expr r = Expr::Reduce(kind, std::move(loops), std::move(body));
    at_ = at;
    pool_ = pool;
    pool_.push_back(std::move(r));
  }

  std::mt19937 rng_;
  Dim n_;
  Kernel k_;
  Expr i_, j_;
  std::vector<Expr> at_, pool_;
};

TEST(KernelFuzz, CompiledEqualsInterpreted) {
  const Dim n = Dim::Symbol("fuzz_n");
  const bool v4 = GetCpuInfo().isa == IsaLevel::kV4;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Kernel k = RandomKernel(seed, n).Make();
    auto oracle = InterpretKernel(k);
    const CpuTarget target = seed % 2 == 0 ? CpuTarget{8, false} : CpuTarget{16, v4};
    auto compiled = CompileCpuKernel(k, target);
    for (int64_t size : {0, 1, 5, 23, 40}) {
      DimEnv env;
      env.Set(n, size);
      ASSERT_TRUE(RunKernel(k, *compiled, env, 1, seed) == RunKernel(k, *oracle, env, 1, seed))
          << "seed " << seed << " n=" << size << " width " << target.width << "\n" << k.ToString();
    }
  }
}

}  // namespace
}  // namespace sinter::codegen::testing
