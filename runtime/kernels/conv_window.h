#pragma once

#include <cstdint>

#include "sinter/runtime/kernels/conv.h"
#include "sinter/runtime/memory.h"

namespace sinter::kernels {

/// Which source pixel each pixel of a grid meets at each kernel position: rows and columns are independent.
/// Offsets are in elements; kNone where the term has the factor 0.
class ConvWindow {
 public:
  static constexpr int64_t kNone = -1;

  /// Grid: output pixels; source: input pixels, `pixel` elements apart.
  static ConvWindow Forward(const Conv2dShape& shape, int64_t pixel);
  /// Grid: input pixels; source: output pixels.
  static ConvWindow BackwardData(const Conv2dShape& shape, int64_t pixel);

  int64_t grid_h() const { return grid_h_; }
  int64_t grid_w() const { return grid_w_; }
  int64_t kh() const { return kh_; }
  int64_t kw() const { return kw_; }
  int64_t positions() const { return kh_ * kw_; }
  int64_t image() const { return image_; }  // elements from one source image to the next
  /// Offset of the source row, or kNone.
  int64_t Row(int64_t i, int64_t kh) const { return rows_.as<int64_t>()[i * kh_ + kh]; }
  int64_t Column(int64_t j, int64_t kw) const { return columns_.as<int64_t>()[j * kw_ + kw]; }

  /// Whether the source pixels at (i, j, kh, 0), (i, j, kh, 1), ... lie next to each other and dense.
  bool has_runs(int64_t channels) const { return run_pixel_ == channels; }
  /// Where the run of grid column j starts in its source row of run_limit() elements: may be negative, and
  /// the run may exceed the row. Only where has_runs.
  int64_t RunStart(int64_t j) const { return (j * run_stride_ - run_pad_) * run_pixel_; }
  int64_t run_limit() const { return run_limit_; }

 private:
  ConvWindow(int64_t grid_h, int64_t grid_w, const Conv2dShape& shape, int64_t image);

  int64_t grid_h_, grid_w_, kh_, kw_, image_;
  int64_t run_pixel_ = kNone, run_stride_ = 0, run_pad_ = 0, run_limit_ = 0;
  MemoryBlock rows_, columns_;
};

/// Walks the pixels of a grid in order, image by image.
class GridCursor {
 public:
  GridCursor(const ConvWindow& window, int64_t pixel)
      : window_(window),
        j_(pixel % window.grid_w()),
        i_(pixel / window.grid_w() % window.grid_h()),
        image_(pixel / window.grid_w() / window.grid_h() * window.image()) {}

  /// Grid pixels left in this row of the grid, this one included.
  int64_t left_in_row() const { return window_.grid_w() - j_; }
  int64_t column() const { return j_; }

  /// Moves on by `count` <= left_in_row() pixels.
  void AdvanceInRow(int64_t count) {
    j_ += count - 1;
    Advance();
  }

  void Advance() {
    if (++j_ < window_.grid_w()) return;
    j_ = 0;
    if (++i_ < window_.grid_h()) return;
    i_ = 0;
    image_ += window_.image();
  }

  /// The source row of a kernel row, or null; and where the run of this column starts in it.
  template <class T>
  const T* SourceRow(const T* base, int64_t kh) const {
    const int64_t row = window_.Row(i_, kh);
    return row < 0 ? nullptr : base + image_ + row;
  }
  int64_t RunStart() const { return window_.RunStart(j_); }

  /// The source at a kernel position, or `none`.
  template <class T>
  const T* Source(const T* base, int64_t kh, int64_t kw, const T* none) const {
    const int64_t row = window_.Row(i_, kh), column = window_.Column(j_, kw);
    return row < 0 || column < 0 ? none : base + image_ + row + column;
  }

  /// table[position * step] = the source at each kernel position.
  template <class T>
  void Sources(const T* base, const T* none, const T** table, int64_t step) const {
    for (int64_t kh = 0; kh < window_.kh(); ++kh) {
      for (int64_t kw = 0; kw < window_.kw(); ++kw, table += step) *table = Source(base, kh, kw, none);
    }
  }

 private:
  const ConvWindow& window_;
  int64_t j_, i_, image_;
};

}  // namespace sinter::kernels
