#pragma once

#include <cstdint>

// The register tiles under every contraction. This header is included by files compiled for different
// instruction sets: it holds no inline function.

namespace sinter::kernels {

/// Columns of one panel of a packed right operand: 64 bytes, on every instruction set.
template <class T>
inline constexpr int kPanelWidth = 64 / static_cast<int>(sizeof(T));

/// One tile of a contraction over at most one block (kContractionBlock) of the contracted index:
/// c[i][j] (+)= the fma chain over p of A(i, p) * b[panel(j)][p][column(j)].
/// Row i of A is cut into segments of `a_length` contiguous values (a matrix has one, a convolution one per
/// kernel position): the chain starts at value `a_offset` of the segment at a[i] and goes on at the start of
/// a[i + a_next],
/// ...
template <class T>
struct TileArgs {
  const T* const* a;
  int64_t a_next;
  int64_t a_offset;
  int64_t a_length;
  const T* b;       // the first panel
  int64_t b_row;    // elements from one p to the next
  int64_t b_panel;  // elements from one panel to the next
  T* c;
  int64_t c_row;
  int64_t k;    // > 0
  int columns;  // valid ones: more than those of all panels but the last
  bool first;   // stores the chain's value; otherwise adds it to c
};

template <class T>
using TileFn = void (*)(const TileArgs<T>&);

inline constexpr int kMaxTileRows = 12;

/// The tiles of one instruction set. fn[r][q] computes r rows by 2^q panels; null where that needs too many
/// registers. Few rows go with many panels, so that enough chains run side by side to hide the latency of an
/// fma.
template <class T>
struct TileSet {
  int max_rows;
  TileFn<T> fn[kMaxTileRows + 1][4];
};

extern const TileSet<float> kTilesV3F32;
extern const TileSet<double> kTilesV3F64;
extern const TileSet<float> kTilesV4F32;
extern const TileSet<double> kTilesV4F64;

}  // namespace sinter::kernels
