#pragma once

#include <algorithm>
#include <cstring>

#include "sinter/runtime/kernels/contraction.h"
#include "sinter/runtime/kernels/conv_window.h"
#include "sinter/runtime/kernels/pack.h"

// The operands of a convolution as those of a contraction: nothing but pointers is made from the image, except where
// its pixels are so short that copying them is cheaper.

namespace sinter::kernels {

/// Rows: pixels of the grid; values of k: (kernel position, channel), `channels` of each source pixel.
template <class T>
class WindowRows final : public RowSource<T> {
 public:
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
  static constexpr int64_t kShortPixel = 12;

  /// Neighbouring pixels lie next to each other in most images: they are copied as one run.
  void CopyRow(const T* const* sources, int64_t step, int64_t k, int64_t count, T* out) const {
    int64_t position = k / channels_, offset = k % channels_;
    while (count > 0) {
      const T* from = sources[position * step] + offset;
      int64_t length = channels_ - offset;
      while (length < count && sources[(position + 1) * step] == sources[position * step] + channels_) {
        length += channels_;
        ++position;
      }
      length = std::min(length, count);
      int64_t i = 0;
      for (; i + kChunk <= length; i += kChunk) std::memcpy(out + i, from + i, kChunk * sizeof(T));
      for (; i < length; ++i) out[i] = from[i];
      out += length;
      count -= length;
      ++position;
      offset = 0;
    }
  }

  static constexpr int64_t kChunk = 32 / sizeof(T);

  const ConvWindow& window_;
  const T* source_;
  int64_t channels_;
  const T* zeros_;
};

/// Panels of a weight: values of k are (kernel position, inner channel), columns the outer channel.
template <class T>
class WeightPanels final : public PanelSource<T> {
 public:
  WeightPanels(const T* data, int64_t inner, int64_t inner_stride, int64_t outer, int64_t outer_stride, int64_t kw,
               int64_t kh_stride, int64_t kw_stride)
      : data_(data), inner_(inner), inner_stride_(inner_stride), outer_(outer), outer_stride_(outer_stride), kw_(kw),
        kh_stride_(kh_stride), kw_stride_(kw_stride) {}

  void Pack(int64_t k0, int kc, int64_t panel0, int64_t panels, T* out) const override {
    constexpr int kWidth = kPanelWidth<T>;
    for (int64_t panel = panel0; panel < panel0 + panels; ++panel) {
      const T* column = data_ + panel * kWidth * outer_stride_;
      for (int64_t k = k0; k < k0 + kc;) {
        const int64_t position = k / inner_, channel = k % inner_;
        const int64_t length = std::min(inner_ - channel, k0 + kc - k);
        const T* from = column + position / kw_ * kh_stride_ + position % kw_ * kw_stride_ + channel * inner_stride_;
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

/// Panels of an image, for the gradient of a weight: values of k are grid pixels, columns (kernel position, channel).
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
    for (int p = 0; p < kc; ++p, out += kWidth, cursor.Advance()) {
      const T* from = cursor.Source(source_, kh, kw, zeros_) + channel;
      if (length == kWidth) {
        std::memcpy(out, from, kWidth * sizeof(T));
      } else {
        for (int64_t i = 0; i < length; ++i) out[i] = from[i];
      }
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
