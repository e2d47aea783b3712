#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sinter/graph/graph.h"
#include "sinter/runtime/executable.h"

namespace sinter::tracer {

/// A program and the programs of its gradients, each derived and compiled when first needed. Thread-safe.
class Differentiable {
 public:
  /// The first `num_results` results of `graph` as a function of all its parameters, states included.
  Differentiable(std::unique_ptr<Graph> graph, int num_results) : graph_(std::move(graph)), num_results_(num_results) {}

  const Graph& graph() const { return *graph_; }
  int num_results() const { return num_results_; }
  std::shared_ptr<const Executable> executable();
  /// The program of the gradients: its parameters are this program's and then a seed for each result, its results the gradients of the
  /// wanted parameters in order. Throws Error where something has no gradient, naming the line.
  std::shared_ptr<Differentiable> Backward(const std::vector<bool>& wanted);

 private:
  std::unique_ptr<Graph> graph_;
  int num_results_;
  std::mutex mutex_;
  std::shared_ptr<const Executable> executable_;
  std::map<std::vector<bool>, std::shared_ptr<Differentiable>> backward_;
};

}  // namespace sinter::tracer
