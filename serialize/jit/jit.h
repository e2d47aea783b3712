#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sinter/eager/tensor.h"
#include "sinter/serialize/format/served_model.h"
#include "sinter/tracer/static_function.h"

/// Saving and loading compiled functions.
namespace sinter::jit {

struct SaveOptions {
  /// Kept in the info file: labels, preprocessing, anything.
  std::map<std::string, std::string> metadata;
};

/// Saves the program of an entry as NAME.sgraph, NAME.safetensors and NAME.json. The old files stay whole until the new program is complete:
/// a save that fails, or is killed at any moment, leaves a model that loads.
void SaveEntry(const tracer::Entry& entry, const std::string& name, const SaveOptions& options = {});

/// Saves the program of a StaticFunction for the state as it is: call eval() on the module before. Compiled now, for the InputSpecs, if no
/// call did. With several programs for this state (host arguments, sizes without an InputSpec) an Error lists them.
template <class Function>
void save(const StaticFunction<Function>& f, const std::string& name, const SaveOptions& options = {}) {
  SaveEntry(*f.program(), name, options);
}

/// A loaded program, callable on tensors.
class LoadedFunction {
 public:
  explicit LoadedFunction(std::shared_ptr<ServedModel> model) : model_(std::move(model)) {}
  /// All results.
  std::vector<Tensor> Call(const std::vector<Tensor>& arguments) const;
  /// The first result.
  template <class... T>
    requires(std::is_convertible_v<const T&, const Tensor&> && ...)
  Tensor operator()(const T&... arguments) const {
    return Call({static_cast<const Tensor&>(arguments)...}).at(0);
  }
  const ServedModel& model() const { return *model_; }

 private:
  std::shared_ptr<ServedModel> model_;
};

LoadedFunction load(const std::string& name, const LoadOptions& options = {});

}  // namespace sinter::jit
