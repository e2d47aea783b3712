#include "sinter/runtime/kernels/gemm.h"

#include "sinter/runtime/kernels/pack.h"

namespace sinter::kernels {
namespace {

/// With at most so many rows, packing a right operand costs more than reading it in place.
constexpr int64_t kDirectRows = 24;

/// Rows that are read in place: unit stride along k.
template <class T>
class PlainRows final : public RowSource<T> {
 public:
  PlainRows(const T* a, int64_t row, int64_t k) : a_(a), row_(row), k_(k) {}
  int64_t pointers_per_row() const override { return 1; }
  bool packs() const override { return false; }
  void Start(int64_t row0, int rows, const T** table) const override {
    for (int i = 0; i < rows; ++i) table[i] = a_ + (row0 + i) * row_;
  }
  RowPointers<T> Block(int64_t, int, int64_t k0, int, const T** table, T*) const override { return {table, 0, k0, k_}; }

 private:
  const T* a_;
  int64_t row_, k_;
};

/// Rows that are copied block by block.
template <class T>
class CopiedRows final : public RowSource<T> {
 public:
  CopiedRows(const T* a, int64_t row, int64_t column) : a_(a), row_(row), column_(column) {}
  int64_t pointers_per_row() const override { return 1; }
  bool packs() const override { return true; }
  void Start(int64_t, int, const T**) const override {}
  RowPointers<T> Block(int64_t row0, int rows, int64_t k0, int kc, const T** table, T* buffer) const override {
    PackRows(a_ + row0 * row_ + k0 * column_, row_, column_, rows, kc, buffer, kc);
    for (int i = 0; i < rows; ++i) table[i] = buffer + static_cast<int64_t>(i) * kc;
    return {table, 0, 0, kc};
  }

 private:
  const T* a_;
  int64_t row_, column_;
};

template <class T>
class MatrixPanels final : public PanelSource<T> {
 public:
  MatrixPanels(const T* b, int64_t row, int64_t column, int64_t n) : b_(b), row_(row), column_(column), n_(n) {}
  void Pack(int64_t k0, int kc, int64_t panel0, int64_t panels, T* out) const override {
    const int64_t column = panel0 * kPanelWidth<T>;
    PackPanels(b_ + k0 * row_ + column * column_, row_, column_, kc, n_ - column, panels, out);
  }

 private:
  const T* b_;
  int64_t row_, column_, n_;
};

/// Rows a multiple of 1 KiB apart compete for the same sets of the first-level cache: worth a copy where each is used
/// for many columns.
template <class T>
bool RowsCollide(const GemmArgs<T>& args) {
  return args.m > 4 && args.n > 64 && args.a_row * static_cast<int64_t>(sizeof(T)) % 1024 == 0 && args.k > 256;
}

}  // namespace

template <class T>
void Gemm(const GemmArgs<T>& args) {
  const PlainRows<T> plain(args.a, args.a_row, args.k);
  const CopiedRows<T> copied(args.a, args.a_row, args.a_column);
  const MatrixPanels<T> panels(args.b, args.b_row, args.b_column, args.n);
  Contraction<T> x;
  x.m = args.m;
  x.n = args.n;
  x.k = args.k;
  x.rows = &copied;
  if ((args.a_column == 1 || args.k == 1) && !RowsCollide(args)) x.rows = &plain;
  x.packed = args.packed_b;
  x.panels = &panels;
  if (args.b_column == 1 && args.m <= kDirectRows) {
    x.direct = args.b;
    x.direct_row = args.b_row;
  }
  x.c = args.c;
  x.c_row = args.c_row;
  x.epilogue = args.epilogue;
  Contract(x);
}

template <class T>
void PackGemmB(const T* b, int64_t b_row, int64_t b_column, int64_t k, int64_t n, T* out) {
  PackAll(MatrixPanels<T>(b, b_row, b_column, n), k, n, out);
}

template void Gemm(const GemmArgs<float>&);
template void Gemm(const GemmArgs<double>&);
template void PackGemmB(const float*, int64_t, int64_t, int64_t, int64_t, float*);
template void PackGemmB(const double*, int64_t, int64_t, int64_t, int64_t, double*);

}  // namespace sinter::kernels
