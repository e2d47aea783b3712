#include "sinter/runtime/kernels/conv.h"

#include <algorithm>

#include "sinter/runtime/kernels/conv_depthwise.h"
#include "sinter/runtime/kernels/conv_operands.h"
#include "sinter/runtime/kernels/conv_window.h"
#include "sinter/runtime/kernels/gemm.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::kernels {
namespace {

bool IsDepthwise(const Conv2dShape& s) { return s.groups > 1 && s.groups == s.c && s.groups == s.oc; }

/// A convolution whose rows are the pixels of the input as they lie.
bool IsPointwise(const Conv2dShape& s) {
  return s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 &&
         (s.pad_top | s.pad_left | s.pad_bottom | s.pad_right) == 0;
}

/// Passes an epilogue on with the columns of a group.
struct GroupEpilogue {
  ContractionEpilogue outer;
  int64_t column0;

  ContractionEpilogue Get() {
    if (outer.fn == nullptr || column0 == 0) return outer;
    return {[](void* self, int64_t row0, int64_t rows, int64_t column0, int64_t columns) {
              const auto& group = *static_cast<GroupEpilogue*>(self);
              group.outer.fn(group.outer.context, row0, rows, group.column0 + column0, columns);
            },
            this};
  }
};

/// Many groups are small each: then threads take whole groups.
template <class Body>
void ForEachGroup(const Conv2dShape& shape, const Body& body) {
  if (shape.groups >= 2 * NumThreads()) {
    ParallelFor(shape.groups, body);
  } else {
    for (int64_t group = 0; group < shape.groups; ++group) body(group);
  }
}

/// Depthwise weights as [position, channel].
template <class T>
void PackDepthwise(const Conv2dShape& s, const ConvWeight<const T>& w, T* out) {
  for (int64_t kh = 0; kh < s.kh; ++kh) {
    for (int64_t kw = 0; kw < s.kw; ++kw) {
      for (int64_t o = 0; o < s.oc; ++o) *out++ = w.data[kh * w.kh + kw * w.kw + o * w.oc];
    }
  }
}

/// A weight whose positions lie side by side, [oc, c, kh, kw], is gathered value by value when panels are cut
/// from it: this moves the positions outside once, with vector transposes. Other weights stay as they are.
template <class T>
class PositionMajorWeight {
 public:
  PositionMajorWeight(const Conv2dShape& s, const ConvWeight<const T>& w) : w_(w) {
    const int64_t positions = s.kh * s.kw, inner = s.c / s.groups, rows = s.oc * inner;
    if (w.data == nullptr || positions == 1 || rows == 0 || w.kw != 1 || w.kh != s.kw || w.c != positions ||
        w.oc != inner * positions) {
      return;
    }
    const int64_t step = rows + 16;  // Keeps the positions out of each other's cache sets.
    block_ = MemoryBlock(ByteCount(step * positions, sizeof(T)));
    T* out = block_.as<T>();
    constexpr int64_t kGrain = 1024;
    ParallelRange((rows + kGrain - 1) / kGrain, 4, [&](int64_t begin, int64_t end) {
      begin *= kGrain;
      end = std::min(end * kGrain, rows);
      Transpose(w.data + begin * positions, positions, end - begin, positions, out + begin, step);
    });
    w_ = {out, inner, 1, s.kw * step, step};
  }
  const ConvWeight<const T>& get() const { return w_; }

 private:
  ConvWeight<const T> w_;
  MemoryBlock block_;
};

template <class T>
WeightPanels<T> ForwardPanels(const Conv2dShape& s, const ConvWeight<const T>& w, int64_t group) {
  const int64_t outer = s.oc / s.groups;
  return WeightPanels<T>(w.data + group * outer * w.oc, s.c / s.groups, w.c, outer, w.oc, s.kw, w.kh, w.kw);
}

template <class T>
void RunDepthwise(const ConvWindow& window, const Conv2dShape& s, const T* source,
                  const ConvWeight<const T>& w, const T* packed, T* out, int64_t out_pixel,
                  const ContractionEpilogue& epilogue) {
  const MemoryBlock zeros = Zeros<T>(s.c);
  MemoryBlock block;
  if (packed == nullptr) {
    block = MemoryBlock(ByteCount(s.kh * s.kw * s.oc, sizeof(T)));
    PackDepthwise(s, w, block.as<T>());
    packed = block.as<T>();
  }
  DepthwiseWindow(window, s.n, s.c, source, zeros.as<T>(), packed, out, out_pixel, epilogue);
}

/// A convolution without window: a matrix product per group.
template <class T>
void ForwardPointwise(const Conv2dForwardArgs<T>& args) {
  const Conv2dShape& s = args.shape;
  const int64_t inner = s.c / s.groups, outer = s.oc / s.groups;
  ForEachGroup(s, [&](int64_t group) {
    GroupEpilogue epilogue{args.epilogue, group * outer};
    GemmArgs<T> gemm;
    gemm.m = s.n * s.h * s.w;
    gemm.n = outer;
    gemm.k = inner;
    gemm.a = args.x + group * inner;
    gemm.a_row = args.x_pixel;
    if (args.packed_w != nullptr) {
      gemm.packed_b = args.packed_w + group * PackedElements<T>(inner, outer);
    } else {
      gemm.b = args.w.data + group * outer * args.w.oc;
      gemm.b_row = args.w.c;
      gemm.b_column = args.w.oc;
    }
    gemm.c = args.y + group * outer;
    gemm.c_row = args.y_pixel;
    gemm.epilogue = epilogue.Get();
    Gemm(gemm);
  });
}

}  // namespace

template <class T>
void Conv2dForward(const Conv2dForwardArgs<T>& args) {
  const Conv2dShape& s = args.shape;
  if (IsPointwise(s) && !IsDepthwise(s)) return ForwardPointwise(args);
  const ConvWindow window = ConvWindow::Forward(s, args.x_pixel);
  if (IsDepthwise(s)) {
    return RunDepthwise(window, s, args.x, args.w, args.packed_w, args.y, args.y_pixel, args.epilogue);
  }
  const int64_t inner = s.c / s.groups, outer = s.oc / s.groups, k = s.kh * s.kw * inner;
  const MemoryBlock zeros = Zeros<T>(inner);
  const PositionMajorWeight<T> weight(s, args.packed_w != nullptr ? ConvWeight<const T>{} : args.w);
  const bool runs = inner < WindowRows<T>::kShortPixel && window.has_runs(inner);
  ForEachGroup(s, [&](int64_t group) {
    GroupEpilogue epilogue{args.epilogue, group * outer};
    const WindowRows<T> window_rows(window, args.x + group * inner, inner, zeros.as<T>());
    const RunRows<T> run_rows(window, args.x + group * inner, inner);
    const WeightPanels<T> panels = ForwardPanels(s, weight.get(), group);
    Contraction<T> x;
    x.m = s.n * window.grid_h() * window.grid_w();
    x.n = outer;
    x.k = k;
    x.rows = &window_rows;
    if (runs) x.rows = &run_rows;
    x.panels = &panels;
    if (args.packed_w != nullptr) x.packed = args.packed_w + group * PackedElements<T>(k, outer);
    x.c = args.y + group * outer;
    x.c_row = args.y_pixel;
    x.epilogue = epilogue.Get();
    Contract(x);
  });
}

template <class T>
int64_t PackedConvWeightElements(const Conv2dShape& s) {
  if (IsDepthwise(s)) return s.kh * s.kw * s.oc;
  return s.groups * PackedElements<T>(s.kh * s.kw * (s.c / s.groups), s.oc / s.groups);
}

template <class T>
void PackConvWeight(const Conv2dShape& s, const ConvWeight<const T>& w, T* out) {
  if (IsDepthwise(s)) return PackDepthwise(s, w, out);
  const int64_t outer = s.oc / s.groups, k = s.kh * s.kw * (s.c / s.groups);
  const PositionMajorWeight<T> weight(s, w);
  for (int64_t group = 0; group < s.groups; ++group) {
    PackAll(ForwardPanels(s, weight.get(), group), k, outer, out + group * PackedElements<T>(k, outer));
  }
}

template <class T>
void Conv2dBackwardData(const Conv2dBackwardDataArgs<T>& args) {
  const Conv2dShape& s = args.shape;
  const ConvWindow window = ConvWindow::BackwardData(s, args.g_pixel);
  if (IsDepthwise(s)) {
    return RunDepthwise<T>(window, s, args.g, args.w, nullptr, args.dx, args.dx_pixel, args.epilogue);
  }
  const int64_t outer = s.c / s.groups, inner = s.oc / s.groups;
  const MemoryBlock zeros = Zeros<T>(inner);
  const PositionMajorWeight<T> weight(s, args.w);
  const ConvWeight<const T>& w = weight.get();
  ForEachGroup(s, [&](int64_t group) {
    GroupEpilogue epilogue{args.epilogue, group * outer};
    const WindowRows<T> rows(window, args.g + group * inner, inner, zeros.as<T>());
    const WeightPanels<T> panels(w.data + group * inner * w.oc, inner, w.oc, outer, w.c, s.kw, w.kh, w.kw);
    Contraction<T> x;
    x.m = s.n * s.h * s.w;
    x.n = outer;
    x.k = s.kh * s.kw * inner;
    x.rows = &rows;
    x.panels = &panels;
    x.c = args.dx + group * outer;
    x.c_row = args.dx_pixel;
    x.epilogue = epilogue.Get();
    Contract(x);
  });
}

template void Conv2dForward(const Conv2dForwardArgs<float>&);
template void Conv2dForward(const Conv2dForwardArgs<double>&);
template int64_t PackedConvWeightElements<float>(const Conv2dShape&);
template int64_t PackedConvWeightElements<double>(const Conv2dShape&);
template void PackConvWeight(const Conv2dShape&, const ConvWeight<const float>&, float*);
template void PackConvWeight(const Conv2dShape&, const ConvWeight<const double>&, double*);
template void Conv2dBackwardData(const Conv2dBackwardDataArgs<float>&);
template void Conv2dBackwardData(const Conv2dBackwardDataArgs<double>&);

}  // namespace sinter::kernels
