#pragma once

#include "sinter/runtime/kernels/contraction.h"
#include "sinter/runtime/kernels/pack.h"

namespace sinter::kernels {

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
  RowPointers<T> Block(int64_t, int, int64_t k0, int, const T** table, T*) const override {
    return {table, 0, k0, k_};
  }

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
  RowPointers<T> Block(int64_t row0, int rows, int64_t k0, int kc, const T** table,
                       T* buffer) const override {
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
  MatrixPanels(const T* b, int64_t row, int64_t column, int64_t n)
      : b_(b), row_(row), column_(column), n_(n) {}
  void Pack(int64_t k0, int kc, int64_t panel0, int64_t panels, T* out) const override {
    const int64_t column = panel0 * kPanelWidth<T>;
    PackPanels(b_ + k0 * row_ + column * column_, row_, column_, kc, n_ - column, panels, out);
  }

 private:
  const T* b_;
  int64_t row_, column_, n_;
};

}  // namespace sinter::kernels
