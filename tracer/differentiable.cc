#include "sinter/tracer/differentiable.h"

#include "sinter/codegen/cpu/backend.h"
#include "sinter/codegen/optimize.h"
#include "sinter/graph/gradient.h"
#include "sinter/graph/ops/basic.h"
#include "sinter/graph/strings.h"

namespace sinter::tracer {

std::shared_ptr<const Executable> Differentiable::executable() {
  std::lock_guard lock(mutex_);
  if (executable_) return executable_;
  std::unique_ptr<Graph> optimized = graph_->Clone();
  codegen::Optimize(*optimized);
  codegen::CompileOptions o;
  o.backend = codegen::CpuBackend();
  executable_ = codegen::Compile(*optimized, o);
  return executable_;
}

std::shared_ptr<Differentiable> Differentiable::Backward(const std::vector<bool>& wanted) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Differentiable>& known = backward_[wanted];
  if (known) return known;
  auto graph = std::make_unique<Graph>();
  Graph& g = *graph;
  g.name = graph_->name + ".backward";
  g.numerics = graph_->numerics;
  g.guards = graph_->guards;
  std::unordered_map<const Value*, Value*> map;
  for (const auto& p : graph_->body.params) map[p.get()] = g.AddArg(p->type, p->name);
  std::vector<Value*> seeds;
  for (int i = 0; i < num_results_; ++i) seeds.push_back(g.AddArg(graph_->body.results[static_cast<size_t>(i)]->type, StrCat("seed", i)));
  std::vector<Value*> results = CloneInto(graph_->body, g.body, map);
  std::vector<Value*> wrt;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) wrt.push_back(g.body.params[i].get());
  g.SetOutputs(results);  // keeps them alive while gradients are made
  LowerGradients(g);
  std::vector<Value*> of, of_seeds;
  for (int i = 0; i < num_results_; ++i) {
    Value* v = g.body.results[static_cast<size_t>(i)];
    if (!IsFloating(v->type.dtype)) continue;
    of.push_back(v);
    of_seeds.push_back(seeds[static_cast<size_t>(i)]);
  }
  std::vector<Value*> grads = Differentiate(g.body, of, of_seeds, wrt);
  GraphBuilder builder(g.body);
  for (size_t k = 0; k < wrt.size(); ++k)
    if (grads[k] == nullptr) grads[k] = GraphBuilder::Unwrap(FullLike(builder.Wrap(wrt[k]), 0));
  g.SetOutputs(grads);
  known = std::make_shared<Differentiable>(std::move(graph), static_cast<int>(wrt.size()));
  return known;
}

}  // namespace sinter::tracer
