#include "sinter/eager/print.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "absl/strings/str_format.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/strings.h"

namespace sinter {
namespace {

// The format that all elements share.
struct Format {
  DType dtype;
  bool scientific = false;
  bool whole = false;  // all floating values are whole: printed as "1."
  int precision = 4;
  size_t width = 0;

  std::string Text(double v, int64_t i) const {
    if (dtype == kBool) return i != 0 ? "true" : "false";
    if (!IsFloating(dtype)) return StrCat(i);
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    if (scientific) return absl::StrFormat("%.*e", precision, v);
    return whole ? absl::StrFormat("%.0f.", v) : absl::StrFormat("%.*f", precision, v);
  }
};

class Printer {
 public:
  Printer(const Tensor& t, const PrintOptions& options) : options_(options), shape_(t.shape()) {
    format_.dtype = t.dtype();
    format_.precision = options.precision;
    if (IsFloating(t.dtype()))
      doubles_ = t.ToVector<double>();
    else
      ints_ = t.ToVector<int64_t>();
    summarize_ = NumElements(shape_) > options.threshold;
  }

  std::string Print() {
    ChooseFormat();
    std::string out;
    Dimension(0, 0, 0, out);
    return out;
  }

 private:
  // Calls f with each position shown along dimension d; -1 stands for the gap.
  template <class F>
  void Shown(size_t d, F&& f) const {
    const int64_t n = shape_[d];
    const bool cut = summarize_ && n > 2 * options_.edge;
    for (int64_t i = 0; i < n; ++i) {
      if (cut && i == options_.edge) {
        f(int64_t{-1});
        i = n - options_.edge;
      }
      f(i);
    }
  }

  template <class F>
  void ForEachShown(size_t d, int64_t base, F&& f) const {
    if (d == shape_.size()) return f(base);
    Shown(d, [&](int64_t i) {
      if (i >= 0) ForEachShown(d + 1, base * shape_[d] + i, f);
    });
  }

  std::string Element(int64_t i) const {
    return format_.Text(doubles_.empty() ? 0 : doubles_[i], ints_.empty() ? 0 : ints_[i]);
  }

  void ChooseFormat() {
    if (!doubles_.empty()) {
      double largest = 0, smallest = INFINITY;
      bool whole = true;
      ForEachShown(0, 0, [&](int64_t i) {
        const double v = std::abs(doubles_[i]);
        if (!std::isfinite(v)) return;
        whole &= v == std::floor(v);
        largest = std::max(largest, v);
        if (v != 0) smallest = std::min(smallest, v);
      });
      format_.scientific =
          largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1e6) && !whole);
      format_.whole = whole && !format_.scientific;
    }
    ForEachShown(0, 0, [&](int64_t i) { format_.width = std::max(format_.width, Element(i).size()); });
  }

  void Dimension(size_t d, int64_t base, size_t indent, std::string& out) const {
    if (d == shape_.size()) {
      const std::string text = Element(base);
      out.append(format_.width - text.size(), ' ').append(text);
      return;
    }
    out += '[';
    const bool innermost = d + 1 == shape_.size();
    bool first = true;
    size_t column = indent + 1;
    Shown(d, [&](int64_t i) {
      if (!first) {
        out += ',';
        if (innermost) {
          const size_t next = column + 2 + format_.width;
          if (next >= static_cast<size_t>(options_.line_width))
            NewLine(indent + 1, 1, out), column = indent + 1;
          else
            out += ' ', column += 2;
        } else {
          NewLine(indent + 1, shape_.size() - d - 1, out);
        }
      }
      first = false;
      if (i < 0) {
        out += "...";
        column += 3;
      } else {
        Dimension(d + 1, base * shape_[d] + i, indent + 1, out);
        column += format_.width;
      }
    });
    out += ']';
  }

  static void NewLine(size_t indent, size_t lines, std::string& out) {
    out.append(lines, '\n').append(indent, ' ');
  }

  const PrintOptions& options_;
  Shape shape_;
  Format format_{};
  bool summarize_ = false;
  std::vector<double> doubles_;
  std::vector<int64_t> ints_;
};

}  // namespace

std::string ToString(const Tensor& t, const PrintOptions& options) {
  if (!t.defined()) return "undefined tensor";
  if (t.is_symbolic()) return StrCat("captured tensor ", t.TypeString());
  return StrCat(Printer(t, options).Print(), "  ", t.TypeString(), t.requires_grad() ? " requires_grad" : "");
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << ToString(t); }

}  // namespace sinter
