#pragma once

#include <cstdint>

namespace sinter::kernels {

// Copies into the forms that the contraction tiles read. T is float or double; strides are in elements.

/// target[c * target_row + r] = source[r * source_row + c] for all r < rows, c < columns.
template <class T>
void Transpose(const T* source, int64_t source_row, int64_t rows, int64_t columns, T* target,
               int64_t target_row);

/// Rows of a left operand, k values each: out[i * out_row + p] = a[i * row + p * column].
template <class T>
void PackRows(const T* a, int64_t row, int64_t column, int64_t rows, int64_t k, T* out, int64_t out_row);

/// Panels of a right operand: out[j][p][c] = b[p * row + (j * kPanelWidth + c) * column] for j < panels, p <
/// k, and 0 where that column is not below `columns`.
template <class T>
void PackPanels(const T* b, int64_t row, int64_t column, int64_t k, int64_t columns, int64_t panels, T* out);

}  // namespace sinter::kernels
