#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "sinter/codegen/kernel.h"

/// Kernel stages as register programs: what the interpreter executes.
namespace sinter::codegen {

/// A size: a constant, or a run-time size by number.
struct SizeRef {
  int64_t constant = 0;
  int size = -1;
  int64_t Get(const int64_t* sizes) const { return size < 0 ? constant : sizes[size]; }
};

struct Instr {
  ExprKind kind = ExprKind::kConst;
  DType in = DType::kFloat32;   ///< type of the (first computed) operand
  DType type = DType::kFloat32;
  int out = 0;                  ///< slot
  int a = -1, b = -1, c = -1;   ///< operand slots
  uint64_t bits = 0;            ///< kConst
  SizeRef size;                 ///< kSize
  int buffer = -1;              ///< kLoad
  std::vector<int> position;    ///< kLoad: slot per dimension; -1: zero
  int predicate = -1;           ///< kLoad
  int reduce = -1;              ///< kReduce: index into Program::reduces
};

struct Import {
  int from = 0, to = 0;
  DType type = DType::kFloat32;
};

struct ReduceCode {
  ReduceKind kind = ReduceKind::kSum;
  DType type = DType::kFloat32;
  std::vector<int> vars;         ///< slot of each loop variable
  std::vector<SizeRef> extents;
  std::vector<Import> imports;   ///< values from outside, copied into the body's own slots
  std::vector<Instr> body;
  int value = -1, value2 = -1;   ///< slots of the body's results
  int workspace = 0;             ///< first of the slots for partial results
};

/// Slots used by a reduction for lanes and block results.
inline constexpr int kReduceWorkspace = 16 + 48 + 2;

struct StoreCode {
  int buffer = 0;
  std::vector<int> position;
  int value = 0;
};

struct StageCode {
  std::vector<SizeRef> inner;
  std::vector<int> vars;         ///< slots of outer, then inner loop variables; -1: not read
  std::vector<Instr> preamble;   ///< once per call
  std::vector<Instr> body;       ///< per tile
  std::vector<StoreCode> stores;
  bool reduce_lanes = false;     ///< lanes run over the reduction
};

struct Program {
  std::vector<KernelBuffer> buffers;
  std::vector<std::vector<SizeRef>> shapes;  ///< by buffer
  std::vector<SizeRef> outer;
  std::vector<StageCode> stages;
  std::vector<ReduceCode> reduces;
  int slots = 0;
};

Program CompileProgram(const Kernel& kernel);

}  // namespace sinter::codegen
