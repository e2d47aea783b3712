#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sinter/codegen/compile.h"
#include "sinter/graph/graph.h"
#include "sinter/graph/op.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/strides.h"

/// Graphs of one op of the registry, on the samples that come with the op.
namespace sinter::codegen::testing {

struct Operand {
  TensorType type;
  Shape shape, strides;
  std::vector<char> bytes;
};

template <class T>
void Put(std::vector<char>& bytes, size_t i, double v) {
  const T t = static_cast<T>(v);
  std::memcpy(bytes.data() + i * sizeof(T), &t, sizeof(T));
}

inline Operand MakeOperand(const SampleInput& in, std::mt19937& rng) {
  const DType t = in.dtype.value_or(kFloat32);
  Operand o{{t, {}}, in.shape, RowMajorStrides(in.shape), {}};
  const int64_t n = NumElements(in.shape);
  for (int64_t d : in.shape) o.type.shape.push_back(Dim(d));
  o.bytes.resize(static_cast<size_t>(n * ItemSize(t)));
  std::uniform_real_distribution<double> u(in.low, in.high);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const double v = u(rng);
    switch (t) {
      case DType::kFloat32:
        Put<float>(o.bytes, i, v);
        break;
      case DType::kFloat64:
        Put<double>(o.bytes, i, v);
        break;
      case DType::kInt32:
        Put<int32_t>(o.bytes, i, std::floor(v));
        break;
      case DType::kInt64:
        Put<int64_t>(o.bytes, i, std::floor(v));
        break;
      case DType::kBool:
        Put<uint8_t>(o.bytes, i, std::floor(v) != 0);
        break;
      default:
        ADD_FAILURE() << "a sample of type " << DTypeName(t);
    }
  }
  return o;
}

inline std::vector<Operand> MakeOperands(const Sample& s) {
  std::mt19937 rng(1);
  std::vector<Operand> operands;
  for (const SampleInput& in : s.inputs) operands.push_back(MakeOperand(in, rng));
  return operands;
}

inline std::shared_ptr<const Executable> CompileOp(const OpDef& op, const AttrPtr& attrs, const std::vector<Operand>& operands,
                                                   const KernelBackend& backend, bool fuse) {
  Graph g;
  std::vector<Value*> in;
  for (size_t i = 0; i < operands.size(); ++i) in.push_back(g.AddArg(operands[i].type, StrCat("x", i)));
  Node* node = g.AddNode(g.body, op, attrs, in);
  std::vector<Value*> outputs;
  for (auto& o : node->outputs) outputs.push_back(o.get());
  g.SetOutputs(outputs);
  CompileOptions options;
  options.fusion.enabled = fuse;
  options.fusion.contractions_as_kernels = true;
  options.backend = backend;
  return Compile(g, options);
}

/// The bytes of the results.
inline std::vector<std::string> RunOp(const Executable& executable, const std::vector<Operand>& operands) {
  std::vector<TensorView> views;
  for (const Operand& o : operands) views.push_back({const_cast<char*>(o.bytes.data()), o.type.dtype, o.shape, o.strides});
  auto env = executable.Bind(views);
  const HostOutputs out = AllocateOutputs(executable, env);
  for (const MemoryBlock& m : out.memory) std::memset(m.data(), '\x55', m.bytes());
  executable.Run(env, views, out.views);
  std::vector<std::string> results;
  for (const MemoryBlock& m : out.memory) results.emplace_back(m.as<const char>(), m.bytes());
  return results;
}

/// The op's own samples, or for an op without a rule of shapes some shapes with its grid of attributes.
inline std::vector<Sample> SamplesOf(const OpDef& op) {
  SampleSink sink;
  op.samples(sink);
  std::vector<Sample> samples = sink.cases;
  if (!sink.range) return samples;
  for (const AttrPtr& attrs : sink.attr_grid.empty() ? std::vector<AttrPtr>{nullptr} : sink.attr_grid)
    for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 3}, Shape{37}}) {
      Sample s;
      for (int i = 0; i < op.inputs; ++i) s.inputs.push_back({shape, sink.range->first, sink.range->second});
      s.attrs = attrs;
      samples.push_back(std::move(s));
    }
  return samples;
}

}  // namespace sinter::codegen::testing
