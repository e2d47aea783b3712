#pragma once

#include <cstdint>

/// Loops over lanes, as templates over the operation. For the interpreter's sources alone, which are compiled
/// so that these loops become vector code. Operands and results are the same lanes of one slot, or different
/// slots: hence ivdep.
namespace sinter::codegen {

template <class T, class R, auto F>
void Map1(const void* a, const void*, const void*, void* out, int n) {
  const T* x = static_cast<const T*>(a);
  R* r = static_cast<R*>(out);
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) r[i] = F(x[i]);
}

template <class T, class R, auto F>
void Map2(const void* a, const void* b, const void*, void* out, int n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* r = static_cast<R*>(out);
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) r[i] = F(x[i], y[i]);
}

template <class T, auto F>
void Map3(const void* a, const void* b, const void* c, void* out, int n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const T* z = static_cast<const T*>(c);
  T* r = static_cast<T*>(out);
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) r[i] = F(x[i], y[i], z[i]);
}

}  // namespace sinter::codegen
