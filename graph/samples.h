#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sinter/graph/attrs.h"
#include "sinter/graph/dtype.h"
#include "sinter/graph/type.h"

/// What an op is tested on: operands, attributes, and a reference that is independent of its rules.
namespace sinter {

/// A small dense array of doubles, for references in samples.
struct RefTensor {
  Shape shape;
  std::vector<double> data;
  double& at(std::initializer_list<int64_t> position);
  double at(std::initializer_list<int64_t> position) const;
  static RefTensor Zeros(Shape shape);
};
using ReferenceFn = std::function<std::vector<RefTensor>(std::span<const RefTensor>, const AttrPtr&)>;

struct SampleInput {
  Shape shape;
  double low = -2, high = 2;                ///< values are drawn from this range
  std::optional<DType> dtype = std::nullopt;  ///< fixed type; otherwise the suite's
};
struct Sample {
  std::vector<SampleInput> inputs;
  AttrPtr attrs;
};
/// Collects what the registry-driven tests run on an op.
class SampleSink {
 public:
  /// Pointwise ops: operands are drawn from [low, high]; shapes, broadcasting, layouts, special values come from the suite.
  SampleSink& Range(double low, double high);
  /// Attributes to try for a pointwise op (defaults otherwise).
  template <class A>
  SampleSink& With(A attrs) { return WithAttrs(MakeAttrs(std::move(attrs))); }
  SampleSink& WithAttrs(AttrPtr attrs);
  /// Scalar reference in double, independent of the body.
  SampleSink& Reference(double (*f)(double));
  SampleSink& Reference(double (*f)(double, double));
  SampleSink& Reference(double (*f)(double, double, double));
  template <class A>
  SampleSink& Reference(double (*f)(double, const A&)) {
    scalar_ = [f](std::span<const double> x, const AttrPtr& a) { return f(x[0], a->As<A>()); };
    return *this;
  }
  /// Other ops: explicit samples and a reference over arrays.
  SampleSink& Case(std::vector<SampleInput> inputs, AttrPtr attrs = nullptr);
  SampleSink& Reference(ReferenceFn f);
  /// Largest error of the f32 result against the reference on f32-rounded operands, in ulp (f64: the same in its ulps, at least 4).
  SampleSink& MaxUlp(double ulp);
  /// Integer dtypes are tested too.
  SampleSink& Integers();
  /// The function has no derivative at these points or jumps there: finite differences keep away by 1e-2.
  SampleSink& Kinks(std::vector<double> points);

  std::optional<std::pair<double, double>> range;
  std::vector<AttrPtr> attr_grid;
  std::function<double(std::span<const double>, const AttrPtr&)> scalar_;
  std::vector<Sample> cases;
  ReferenceFn reference;
  double max_ulp = 0;
  bool integers = false;
  std::vector<double> kinks;
};

}  // namespace sinter
