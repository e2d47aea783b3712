#pragma once

#include <cstdint>
#include <vector>

#include "sinter/codegen/interpret_ops.h"
#include "sinter/codegen/kernel.h"
#include "sinter/graph/numerics.h"

/// Kernel stages as register programs: what the interpreter executes.
///
/// A register ("slot") holds a value for each lane of a tile. Slots are numbered [0, constants) for
/// constants, which are made once per program, then those of the program's run. Loop variables are numbered
/// through the whole program.
namespace sinter::codegen {

/// A size: a constant, or a run-time size by number.
struct SizeRef {
  int64_t constant = 0;
  int size = -1;
  int64_t Get(const int64_t* sizes) const { return size < 0 ? constant : sizes[size]; }
};

/// Part of a position in dimension `dimension`: factor * size * value of a loop variable; without a variable
/// (-1) just factor * size.
struct PositionTerm {
  int dimension = 0;
  int var = -1;
  int64_t factor = 1;
  int size = -1;  ///< -1: 1
};

/// Where a load or store is.
struct Access {
  int buffer = 0;
  bool affine = false;  ///< terms say it all; else slots
  std::vector<PositionTerm> terms;
  std::vector<int> slots;  ///< by dimension; -1: zero
};

enum class InstrKind : uint8_t { kOp, kSize, kLoad, kReduce };

struct Instr {
  InstrKind kind = InstrKind::kOp;
  DType type = DType::kFloat32;
  LaneFn fn = nullptr;          ///< kOp
  int out = -1;                 ///< slot
  int operands[3] = {0, 0, 0};  ///< slots; those that fn ignores are 0
  SizeRef size;                 ///< kSize
  int access = -1;              ///< kLoad
  int predicate = -1;           ///< kLoad: slot
  bool in_place = false;        ///< kLoad: the slot may stand for the memory itself
  int reduce = -1;              ///< kReduce: index into Program::reduces
};

struct Import {
  int from = 0, to = 0;
  DType type = DType::kFloat32;
};

struct Loop {
  int var = 0;
  int slot = -1;  ///< that the code reads the variable from; -1: only accesses use it
  SizeRef extent;
};

struct ReduceCode {
  ReduceKind kind = ReduceKind::kSum;
  DType type = DType::kFloat32;
  LaneFn combine = nullptr;   ///< kContract: addition
  LaneFn multiply = nullptr;  ///< kContract: fma, or integer multiplication
  std::vector<Loop> loops;
  std::vector<Import> imports;  ///< values from outside, copied into the body's own slots
  std::vector<Instr> body;
  std::vector<int> accesses;    ///< that the body (and reductions in it) makes
  int value = -1, value2 = -1;  ///< slots of the body's results
  int workspace = 0;            ///< first of its slots in the workspace
};

/// Slots used by a reduction for lanes and block results.
inline constexpr int kReduceWorkspace = kReduceLanes + 48 + 2;

struct StoreCode {
  int access = 0;
  int value = 0;
};

struct StageCode {
  std::vector<Loop> outer, inner;
  std::vector<Instr> preamble;  ///< once per call
  std::vector<Instr> body;      ///< per tile
  std::vector<StoreCode> stores;
  std::vector<int> accesses;  ///< all of them, reductions included
  bool reduce_lanes = false;  ///< lanes run over the reduction
};

struct Constant {
  DType type = DType::kFloat32;
  uint64_t bits = 0;
};

struct Program {
  std::vector<KernelBuffer> buffers;
  std::vector<std::vector<SizeRef>> shapes;  ///< by buffer
  std::vector<StageCode> stages;
  std::vector<ReduceCode> reduces;
  std::vector<Access> accesses;
  std::vector<Constant> constants;
  int vars = 0;
  int slots = 0;      ///< with the constants
  int workspace = 0;  ///< slots of all reductions' workspaces
};

Program CompileProgram(const Kernel& kernel);

}  // namespace sinter::codegen
