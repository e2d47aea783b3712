#pragma once

#include <algorithm>
#include <cstring>

#include "sinter/runtime/kernels/contraction.h"
#include "sinter/runtime/kernels/conv_window.h"
#include "sinter/runtime/kernels/pack.h"

// The operands of a convolution as those of a contraction: nothing but pointers is made from the image,
// except where its pixels are so short that copying them is cheaper.

namespace sinter::kernels {

/// Rows: pixels of the grid; values of k: (kernel position, channel), `channels` of each source pixel.
template <class T>
class WindowRows final : public RowSource<T> {
 public:
  /// Pixels of fewer channels are copied: a segment that short costs more than its arithmetic.
  static constexpr int64_t kShortPixel = 12;

  /// `zeros` has `channels` zeros.
  WindowRows(const ConvWindow& window, const T* source, int64_t channels, const T* zeros)
      : window_(window), source_(source), channels_(channels), zeros_(zeros) {}

  int64_t pointers_per_row() const override { return window_.positions() + 1; }
  bool packs() const override { return channels_ < kShortPixel; }

  void Start(int64_t row0, int rows, const T** table) const override {
    GridCursor cursor(window_, row0);
    for (int i = 0; i < rows; ++i, cursor.Advance()) cursor.Sources(source_, zeros_, table + rows + i, rows);
  }

  RowPointers<T> Block(int64_t, int rows, int64_t k0, int kc, const T** table, T* buffer) const override {
    const T** sources = table + rows;  // The first `rows` entries are for copied rows.
    if (!packs()) return {sources + k0 / channels_ * rows, rows, k0 % channels_, channels_};
    for (int i = 0; i < rows; ++i) {
      table[i] = buffer + static_cast<int64_t>(i) * kc;
      CopyRow(sources + i, rows, k0, kc, buffer + static_cast<int64_t>(i) * kc);
    }
    return {table, 0, 0, kc};
  }

 private:
  void CopyRow(const T* const* sources, int64_t step, int64_t k, int64_t count, T* out) const {
    int64_t position = k / channels_, offset = k % channels_;
    for (; count > 0; ++position, offset = 0) {
      const T* from = sources[position * step] + offset;
      const int64_t length = std::min(channels_ - offset, count);
      for (int64_t i = 0; i < length; ++i) out[i] = from[i];
      out += length;
      count -= length;
    }
  }

  const ConvWindow& window_;
  const T* source_;
  int64_t channels_;
  const T* zeros_;
};

/// The same for windows whose rows are runs of dense short pixels: those are copied run by run.
template <class T>
class RunRows final : public RowSource<T> {
 public:
  RunRows(const ConvWindow& window, const T* source, int64_t channels)
      : window_(window), source_(source), run_(window.kw() * channels) {}

  int64_t pointers_per_row() const override { return 1; }
  bool packs() const override { return true; }
  void Start(int64_t, int, const T**) const override {}

  RowPointers<T> Block(int64_t row0, int rows, int64_t k0, int kc, const T** table,
                       T* buffer) const override {
    GridCursor cursor(window_, row0);
    for (int i = 0; i < rows; ++i, cursor.Advance(), buffer += kc) {
      table[i] = buffer;
      T* out = buffer;
      for (int64_t k = k0; k < k0 + kc;) {
        const int64_t offset = k % run_, length = std::min(run_ - offset, k0 + kc - k);
        CopyRun(cursor.SourceRow(source_, k / run_), cursor.RunStart() + offset, length, out);
        out += length;
        k += length;
      }
    }
    return {table, 0, 0, kc};
  }

 private:
  /// row[start, start + length), zeros where that is outside the row.
  void CopyRun(const T* row, int64_t start, int64_t length, T* out) const {
    if (row == nullptr) {
      std::fill_n(out, length, T{0});
      return;
    }
    const int64_t before = std::clamp<int64_t>(-start, 0, length);
    const int64_t after = std::clamp<int64_t>(start + length - window_.run_limit(), 0, length - before);
    std::fill_n(out, before, T{0});
    CopyDense(row + start + before, length - before - after, out + before);
    std::fill_n(out + length - after, after, T{0});
  }

  static void CopyDense(const T* from, int64_t length, T* out) {
    constexpr int64_t kChunk = 32 / sizeof(T);
    if (length < kChunk) {
      for (int64_t i = 0; i < length; ++i) out[i] = from[i];
      return;
    }
    for (int64_t i = 0; i + kChunk < length; i += kChunk) std::memcpy(out + i, from + i, kChunk * sizeof(T));
    std::memcpy(out + length - kChunk, from + length - kChunk, kChunk * sizeof(T));
  }

  const ConvWindow& window_;
  const T* source_;
  int64_t run_;
};

/// Panels of a weight: values of k are (kernel position, inner channel), columns the outer channel.
template <class T>
class WeightPanels final : public PanelSource<T> {
 public:
  WeightPanels(const T* data, int64_t inner, int64_t inner_stride, int64_t outer, int64_t outer_stride,
               int64_t kw, int64_t kh_stride, int64_t kw_stride)
      : data_(data),
        inner_(inner),
        inner_stride_(inner_stride),
        outer_(outer),
        outer_stride_(outer_stride),
        kw_(kw),
        kh_stride_(kh_stride),
        kw_stride_(kw_stride) {}

  void Pack(int64_t k0, int kc, int64_t panel0, int64_t panels, T* out) const override {
    constexpr int kWidth = kPanelWidth<T>;
    for (int64_t panel = panel0; panel < panel0 + panels; ++panel) {
      const T* column = data_ + panel * kWidth * outer_stride_;
      for (int64_t k = k0; k < k0 + kc;) {
        const int64_t position = k / inner_, channel = k % inner_;
        const int64_t length = std::min(inner_ - channel, k0 + kc - k);
        const T* from =
            column + position / kw_ * kh_stride_ + position % kw_ * kw_stride_ + channel * inner_stride_;
        PackPanels(from, inner_stride_, outer_stride_, length, outer_ - panel * kWidth, 1, out);
        out += length * kWidth;
        k += length;
      }
    }
  }

 private:
  const T* data_;
  int64_t inner_, inner_stride_, outer_, outer_stride_, kw_, kh_stride_, kw_stride_;
};

/// Panels of an image, for the gradient of a weight: values of k are grid pixels, columns (kernel position,
/// channel).
template <class T>
class ImagePanels final : public PanelSource<T> {
 public:
  ImagePanels(const ConvWindow& window, const T* source, int64_t channels, const T* zeros)
      : window_(window), source_(source), channels_(channels), zeros_(zeros) {}

  void Pack(int64_t k0, int kc, int64_t panel0, int64_t panels, T* out) const override {
    constexpr int kWidth = kPanelWidth<T>;
    const int64_t columns = window_.positions() * channels_;
    for (int64_t panel = panel0; panel < panel0 + panels; ++panel, out += static_cast<int64_t>(kc) * kWidth) {
      const int64_t first = panel * kWidth, end = std::min(first + kWidth, columns);
      if (end - first < kWidth) std::memset(out, 0, static_cast<size_t>(kc) * kWidth * sizeof(T));
      for (int64_t column = first; column < end;) {
        const int64_t length = std::min(channels_ - column % channels_, end - column);
        PackColumns(k0, kc, column, length, out + (column - first));
        column += length;
      }
    }
  }

 private:
  /// Columns of one kernel position.
  void PackColumns(int64_t k0, int kc, int64_t column, int64_t length, T* out) const {
    constexpr int kWidth = kPanelWidth<T>;
    const int64_t position = column / channels_, channel = column % channels_;
    const int64_t kh = position / window_.kw(), kw = position % window_.kw();
    GridCursor cursor(window_, k0);
    for (int64_t rest = kc; rest > 0;) {
      const int64_t count = std::min(cursor.left_in_row(), rest), j = cursor.column();
      const T* row = cursor.SourceRow(source_, kh);
      for (int64_t i = 0; i < count; ++i, out += kWidth) {
        const int64_t offset = window_.Column(j + i, kw);
        const T* from = (row == nullptr || offset < 0 ? zeros_ : row + offset) + channel;
        if (length == kWidth) {
          std::memcpy(out, from, kWidth * sizeof(T));
        } else {
          for (int64_t c = 0; c < length; ++c) out[c] = from[c];
        }
      }
      cursor.AdvanceInRow(count);
      rest -= count;
    }
  }

  const ConvWindow& window_;
  const T* source_;
  int64_t channels_;
  const T* zeros_;
};

/// `count` zeros.
template <class T>
MemoryBlock Zeros(int64_t count) {
  MemoryBlock block(ByteCount(count, sizeof(T)));
  std::memset(block.data(), 0, static_cast<size_t>(count) * sizeof(T));
  return block;
}

}  // namespace sinter::kernels
