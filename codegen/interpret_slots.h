#pragma once

#include <span>

#include "sinter/codegen/interpret_program.h"

/// Slots of programs in the making.
namespace sinter::codegen {

/// Marks the slot of a constant: constants are counted apart until NumberSlots.
inline constexpr int kConstantBit = 1 << 30;

/// Results of `code` that aren't needed any more give their slot to later ones, so that the slots in use stay
/// in the cache. Slots of loads are shared among loads alone: they may stand for memory. `live`: what is read
/// after the code.
void ShareSlots(Program& program, std::span<Instr> code, std::span<int* const> live);

/// Numbers the slots of a whole program densely, constants first.
void NumberSlots(Program& program);

}  // namespace sinter::codegen
