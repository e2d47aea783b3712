#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sinter/codegen/cpu/linear.h"
#include "sinter/codegen/cpu/vector_ops.h"
#include "sinter/codegen/kernel.h"

/// Turns one kernel into one LLVM function. Internal to this folder.
///
/// Code is written into a chain of levels: the function's entry, then one level per open loop. An expression is emitted once, at the
/// outermost level at which everything that it depends on is known, so that whatever doesn't change in a loop is computed before it.
/// A loop's own branches are written when it is closed; until then its surroundings can still receive code.
namespace sinter::codegen::cpu {

/// The most lanes that any loop has.
inline constexpr int kMaxLanes = 64;

class KernelEmitter {
 public:
  /// `sizes` is the run-time argument list of the kernel as its caller sees it.
  KernelEmitter(const Kernel& kernel, std::vector<Dim> sizes, Products products, int width, llvm::Module& module);
  llvm::Function* Run(const std::string& name);

 private:
  using Value = llvm::Value;

  /// Lanes of a level: loop variable `var` has the values base, base + 1, ... there; its scalar value is the base.
  struct Lanes {
    int var = -1;
    int count = 0;
    Value* mask = nullptr;  ///< lanes that exist; null: all, or as below
    /// In a loop whose one body also does the rest: whether all lanes exist, and how many are left.
    Value* whole = nullptr;
    Value* left = nullptr;
  };

  struct Level {
    std::vector<int> vars;
    llvm::BasicBlock* block = nullptr;  ///< where code of this level is appended
    std::optional<Lanes> lanes;
    std::unordered_map<const ExprNode*, Value*> scalars, vectors;  ///< by representative
    std::map<std::pair<Value*, int>, Value*> splats;
  };

  /// A loop that is open, or a block that runs conditionally.
  struct Open {
    llvm::BasicBlock* first = nullptr;
    llvm::BasicBlock* exit = nullptr;
    Value* condition = nullptr;  ///< whether it is entered; null: always
    Value* end = nullptr;        ///< loops
    llvm::PHINode* index = nullptr;
    std::vector<Value*> initial;
    std::vector<llvm::PHINode*> carried;
  };

  // emitter.cc: levels and control flow.
  Builder& At(size_t depth);
  Builder& Here() { return At(chain_.size() - 1); }
  size_t Top() const { return chain_.size() - 1; }
  Level& Push(std::vector<int> vars, llvm::BasicBlock* block);
  void Pop();
  /// for (i = start; i < end; ) with values carried from turn to turn; `vars` get their values from Bind.
  Open OpenLoop(std::vector<int> vars, Value* start, Value* end, std::span<Value* const> carried = {});
  /// Ends a turn: the next index and carried values. Returns the carried values after the loop (the initial ones if it never ran).
  std::vector<Value*> CloseLoop(Open& loop, Value* next, std::span<Value* const> carried = {});
  Open OpenBlock(Value* condition, std::vector<int> vars = {});
  /// Values after a conditional block: `inside` if it ran, else `outside`.
  std::vector<Value*> CloseBlock(Open& block, std::span<Value* const> inside = {}, std::span<Value* const> outside = {});
  void Bind(int var, Value* v) { chain_.back()->scalars[Representative(Expr::Index(var))] = v; }
  Value* Alloca(llvm::Type* type, const llvm::Twine& name, int64_t count = 1);
  Value* SizeValue(Dim d);
  bool HasSizeValue(Dim d) const;
  llvm::ConstantInt* I64(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  Value* Step(Value* i, int64_t by) { return Here().CreateAdd(i, I64(by), "", by >= 0, true); }
  const Lanes* ActiveLanes() const;

  // emit_expr.cc: expressions.
  /// One node for all that are equal. Compares nodes by the representatives of their operands: linear where equality isn't.
  const ExprNode* Representative(const Expr& e);
  const std::vector<int>& Free(const Expr& e);
  bool ReadsWritten(const Expr& e);
  size_t Depth(const Expr& e);
  bool VariesByLane(const Expr& e);
  /// The value of an expression that all lanes share; of an index expression that differs by lane, its value in lane 0.
  Value* Scalar(const Expr& e);
  /// The value in every lane of the active lanes.
  Value* Vector(const Expr& e);
  Value* Get(const Expr& e, int lanes) { return lanes == 0 ? Scalar(e) : Vector(e); }
  Value* Splat(Value* scalar, size_t depth, int lanes);
  Value* Iota(int lanes, int64_t step = 1);
  Value* Define(const Expr& e, size_t depth, int lanes);
  static int NodeCount(std::span<const Expr> roots);
  static int NodeCount(std::span<const KernelStage> stages);

  // emit_memory.cc: loads and stores.
  Expr Offset(int buffer, std::span<const Expr> position);
  Value* Address(Builder& b, int buffer, Value* offset);
  Value* FromMemory(Builder& b, DType t, Value* v);
  Value* Zeros();
  /// The distance of neighbouring lanes of an offset, if there is one and it is known here.
  std::optional<Dim> LaneStep(const Expr& offset);
  /// Emits an access of the active lanes, given the mask of lanes that exist (null: all), at a depth; the access may be written twice.
  Value* ForLanes(size_t depth, const std::function<Value*(Builder&, Value* mask)>& access);
  Value* ScalarLoad(const ExprNode& load, size_t depth);
  Value* VectorLoad(const ExprNode& load, size_t depth);
  /// Addresses of all lanes, for what isn't contiguous.
  Value* Addresses(int buffer, const Expr& offset, size_t depth);
  void Store(const KernelStore& store, Value* value);

  // emit_reduce.cc: reductions.
  struct Reduction {
    const ExprNode& node;
    std::vector<int> vars;
    std::vector<Value*> extents;
    Value* total;
    int64_t least, most;  ///< bounds of the total
    int lanes;            ///< of the results
  };
  /// One block of a reduction: the values [from, to) of the flattened loops, of which the first is at `at` (more than one variable).
  using Position = std::vector<Value*>;
  struct BlockResult {
    Value* value;
    Position at;  ///< after the block
  };
  using EmitBlock = std::function<BlockResult(Value* from, Value* to, const Position& at)>;
  Value* EmitReduce(const Expr& e, size_t depth, int lanes);
  Value* Choose(const Reduction& r);
  Value* Unrolled(const Reduction& r);
  Value* Contract(const Reduction& r);
  Value* ByResult(const Reduction& r);
  Value* ByLane(const Reduction& r);
  Value* Tree(const Reduction& r, const EmitBlock& block);
  Position Start(const Reduction& r) const;
  void BindPosition(const Reduction& r, Value* k, std::span<Value* const> at);
  Position NextPosition(const Reduction& r, std::span<Value* const> at, int64_t step);
  Value* FoldLanes(const ExprNode& n, Value* v);
  Value* FoldUnrolled(const ExprNode& n, std::vector<Value*> lanes);
  Value* FoldPartials(const Reduction& r, Value* partials);
  Value* OneByOne(const Reduction& r);
  void PushBlock(const Reduction& r, Value* stack, Value* block, Value* result);
  Value* FinishBlocks(const Reduction& r, Value* stack, Value* blocks);
  Value* LoadPartial(const Reduction& r, Value* base, Value* index);
  void StorePartial(const Reduction& r, Value* base, Value* index, Value* v);
  Value* Identity(const ExprNode& n, int lanes);

  // emit_stage.cc: domains and stages.
  bool AllStagesOuter() const;
  void OuterDomain();
  void Points(Value* begin, Value* end);
  void Stages();
  void Stage(const KernelStage& s, size_t inner);
  void Stores(const KernelStage& s);
  /// Runs `body`, which emits `stages`, for lo <= var < hi with lanes over var; what doesn't fill a vector runs with a mask.
  void LaneLoop(int var, Value* lo, Value* hi, std::span<const KernelStage> stages, const std::function<void()>& body);
  int LaneCount(std::span<const KernelStage> stages) const;

  const Kernel& k_;
  std::vector<Dim> sizes_;
  Products products_;
  const int width_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  Builder b_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  std::vector<std::unique_ptr<Level>> chain_;
  std::unordered_map<int, size_t> depth_of_var_;
  size_t stage_depth_ = 0;

  std::vector<std::vector<Dim>> strides_;       // by buffer
  std::vector<Value*> bases_;                   // by buffer
  std::vector<Value*> lane_locals_;             // by buffer: values of local scalars in every lane, if lanes run over outer points
  bool outer_lanes_ = false;
  Value* zeros_ = nullptr;                      // what loads with a false predicate read; see Zeros
  std::unordered_map<Dim, Value*> size_values_;
  std::unordered_map<const ExprNode*, std::vector<int>> free_;
  std::unordered_map<const ExprNode*, bool> reads_written_;
  std::unordered_map<const ExprNode*, const ExprNode*> representatives_;
  std::unordered_multimap<size_t, const ExprNode*> by_hash_;  // representatives
  std::vector<Expr> keep_;                      // expressions made here, so that the maps' keys stay alive
};

}  // namespace sinter::codegen::cpu
