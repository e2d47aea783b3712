#include "sinter/codegen/interpret_slots.h"

#include <unordered_map>
#include <utility>

namespace sinter::codegen {
namespace {

// Calls f with every slot that an instruction reads, by reference.
template <class F>
void ForEachRead(Program& program, Instr& i, F f) {
  if (i.kind == InstrKind::kOp)
    for (int& s : i.operands) f(s);
  if (i.predicate >= 0) f(i.predicate);
  if (i.access >= 0)
    for (int& s : program.accesses[i.access].slots)
      if (s >= 0) f(s);
  if (i.reduce >= 0)
    for (Import& m : program.reduces[i.reduce].imports) f(m.from);
}

}  // namespace

void ShareSlots(Program& program, std::span<Instr> code, std::span<int* const> live) {
  std::unordered_map<int, size_t> last_read;  // of results of this code
  for (size_t at = 0; at < code.size(); ++at) last_read.emplace(code[at].out, at);
  for (size_t at = 0; at < code.size(); ++at)
    ForEachRead(program, code[at], [&](int s) {
      if (auto it = last_read.find(s); it != last_read.end()) it->second = at;
    });
  for (int* s : live)
    if (auto it = last_read.find(*s); it != last_read.end()) it->second = code.size();

  std::unordered_map<int, int> shared;
  std::vector<int> free[2];
  auto renamed = [&](int s) {
    auto it = shared.find(s);
    return it == shared.end() ? s : it->second;
  };
  std::vector<std::vector<std::pair<int, bool>>> ends(code.size());
  for (const Instr& i : code)
    if (const size_t at = last_read[i.out]; at < ends.size())
      ends[at].push_back({i.out, i.kind == InstrKind::kLoad});
  for (size_t at = 0; at < code.size(); ++at) {
    Instr& i = code[at];
    // Operands are freed after this: a result never goes where an operand of another width is still to be
    // read.
    std::vector<int>& pool = free[i.kind == InstrKind::kLoad];
    const int own = i.out;
    if (!pool.empty()) {
      shared[own] = pool.back();
      pool.pop_back();
    }
    ForEachRead(program, i, [&](int& s) { s = renamed(s); });
    i.out = renamed(own);
    for (auto [slot, load] : ends[at]) free[load].push_back(renamed(slot));
  }
  for (int* s : live) *s = renamed(*s);
}

void NumberSlots(Program& program) {
  const int constants = static_cast<int>(program.constants.size());
  std::unordered_map<int, int> numbers;
  auto fix = [&](int& s) {
    if (s < 0) return;
    if (s & kConstantBit)
      s &= ~kConstantBit;
    else
      s = numbers.emplace(s, constants + static_cast<int>(numbers.size())).first->second;
  };
  auto fix_code = [&](std::vector<Instr>& code) {
    for (Instr& i : code) {
      fix(i.out);
      fix(i.predicate);
      if (i.kind == InstrKind::kOp)
        for (int& s : i.operands) fix(s);
    }
  };
  for (Access& a : program.accesses)
    for (int& s : a.slots) fix(s);
  for (StageCode& s : program.stages) {
    for (Loop& l : s.outer) fix(l.slot);
    for (Loop& l : s.inner) fix(l.slot);
    fix_code(s.preamble);
    fix_code(s.body);
    for (StoreCode& store : s.stores) fix(store.value);
  }
  for (ReduceCode& r : program.reduces) {
    for (Loop& l : r.loops) fix(l.slot);
    for (Import& m : r.imports) fix(m.from), fix(m.to);
    fix_code(r.body);
    fix(r.value);
    fix(r.value2);
  }
  program.slots = constants + static_cast<int>(numbers.size());
}

}  // namespace sinter::codegen
