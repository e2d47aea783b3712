#pragma once

#include <cstdint>

#include "sinter/runtime/kernels/gemm_tile.h"

// The blocked loop that matrix products and convolutions share: who supplies the operands differs, the order
// of arithmetic (graph/numerics.h) does not.

namespace sinter::kernels {

/// Called once for each finished rectangle of the output, on the thread that computed it, while it is in
/// cache. The rectangles cover the output exactly. Null fn: nothing to do.
struct ContractionEpilogue {
  void (*fn)(void* context, int64_t row0, int64_t rows, int64_t column0, int64_t columns) = nullptr;
  void* context = nullptr;
};

/// Rows of a block, as TileArgs takes them.
template <class T>
struct RowPointers {
  const T* const* a;
  int64_t next;
  int64_t offset;
  int64_t length;
};

/// Supplies the rows of the left operand [m, k]. Called by many threads at once: state lives in what is lent.
template <class T>
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// Pointers that a row needs in the lent table.
  virtual int64_t pointers_per_row() const = 0;
  /// Whether Block copies into the lent buffer.
  virtual bool packs() const = 0;
  /// Called once for a block of rows, before its Blocks. `table` has pointers_per_row() * rows entries.
  virtual void Start(int64_t row0, int rows, const T** table) const = 0;
  /// Values [k0, k0 + kc) of the rows. `buffer`, if packs(), has rows * kc elements.
  virtual RowPointers<T> Block(int64_t row0, int rows, int64_t k0, int kc, const T** table,
                               T* buffer) const = 0;
};

/// Supplies panels of the right operand [k, n].
template <class T>
class PanelSource {
 public:
  virtual ~PanelSource() = default;
  /// Writes out[j][p][c] = value (k0 + p, (panel0 + j) * kPanelWidth + c), 0 for columns beyond n.
  virtual void Pack(int64_t k0, int kc, int64_t panel0, int64_t panels, T* out) const = 0;
};

/// c[m, n] = rows * columns. The right operand is given by at least one of: `packed` (the whole of it, see
/// PackedElements), `direct` (row-major with unit column stride, read in place; needs `panels` too, for the
/// last columns when n is no multiple of the panel), `panels` (packed as it is needed).
template <class T>
struct Contraction {
  int64_t m = 0, n = 0, k = 0;
  const RowSource<T>* rows = nullptr;
  const T* packed = nullptr;
  const T* direct = nullptr;
  int64_t direct_row = 0;
  const PanelSource<T>* panels = nullptr;
  T* c = nullptr;
  int64_t c_row = 0;
  ContractionEpilogue epilogue;
};

/// Uses the pool's threads unless the work is too small or the caller is inside a parallel task.
template <class T>
void Contract(const Contraction<T>& contraction);

/// Elements of a packed right operand [k, n]: blocks of kContractionBlock values of k, each holding all
/// panels, [block][panel][k in block][kPanelWidth].
template <class T>
int64_t PackedElements(int64_t k, int64_t n);

/// Packs a whole right operand. `out` has PackedElements(k, n) elements, best aligned to 64 bytes.
template <class T>
void PackAll(const PanelSource<T>& source, int64_t k, int64_t n, T* out);

}  // namespace sinter::kernels
