#include "sinter/runtime/kernels/gemm.h"

#include "sinter/runtime/kernels/gemm_operands.h"

namespace sinter::kernels {
namespace {

/// With at most so many rows, packing a right operand costs more than reading it in place.
constexpr int64_t kDirectRows = 24;

/// Rows a multiple of 1 KiB apart compete for the same sets of the first-level cache: worth a copy where each
/// is used for many columns.
template <class T>
bool RowsCollide(const GemmArgs<T>& args) {
  return args.m > 4 && args.n > 64 && args.a_row * static_cast<int64_t>(sizeof(T)) % 1024 == 0 &&
         args.k > 256;
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
