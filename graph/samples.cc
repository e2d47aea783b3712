#include <span>

#include "sinter/graph/op.h"

namespace sinter {
namespace {

size_t Offset(const Shape& shape, std::initializer_list<int64_t> position) {
  size_t offset = 0, d = 0;
  for (int64_t i : position) {
    SINTER_CHECK(d < shape.size() && i >= 0 && i < shape[d]);
    offset = offset * shape[d++] + i;
  }
  SINTER_CHECK(d == shape.size());
  return offset;
}

}  // namespace

double& RefTensor::at(std::initializer_list<int64_t> position) { return data[Offset(shape, position)]; }
double RefTensor::at(std::initializer_list<int64_t> position) const { return data[Offset(shape, position)]; }

RefTensor RefTensor::Zeros(Shape shape) {
  RefTensor r;
  r.data.assign(NumElements(shape), 0.0);
  r.shape = std::move(shape);
  return r;
}

SampleSink& SampleSink::Range(double low, double high) {
  range = {low, high};
  return *this;
}
SampleSink& SampleSink::WithAttrs(AttrPtr attrs) {
  attr_grid.push_back(std::move(attrs));
  return *this;
}
SampleSink& SampleSink::Reference(double (*f)(double)) {
  scalar_ = [f](std::span<const double> x, const AttrPtr&) { return f(x[0]); };
  return *this;
}
SampleSink& SampleSink::Reference(double (*f)(double, double)) {
  scalar_ = [f](std::span<const double> x, const AttrPtr&) { return f(x[0], x[1]); };
  return *this;
}
SampleSink& SampleSink::Reference(double (*f)(double, double, double)) {
  scalar_ = [f](std::span<const double> x, const AttrPtr&) { return f(x[0], x[1], x[2]); };
  return *this;
}
SampleSink& SampleSink::Case(std::vector<SampleInput> inputs, AttrPtr attrs) {
  cases.push_back({std::move(inputs), std::move(attrs)});
  return *this;
}
SampleSink& SampleSink::Reference(ReferenceFn f) {
  reference = std::move(f);
  return *this;
}
SampleSink& SampleSink::MaxUlp(double ulp) {
  max_ulp = ulp;
  return *this;
}
SampleSink& SampleSink::Integers() {
  integers = true;
  return *this;
}
SampleSink& SampleSink::Kinks(std::vector<double> points) {
  kinks = std::move(points);
  return *this;
}

}  // namespace sinter
