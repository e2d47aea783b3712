#pragma once

#include <concepts>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sinter/eager/nn/module.h"
#include "sinter/eager/optim/optim.h"
#include "sinter/eager/tensor.h"

/// Tensors in files of the ecosystem's formats, and checkpoints of modules and optimizers. Writing is atomic: the old file stays whole until
/// the new one is complete. A file that is missing, truncated or damaged is an Error that says so. Not for use inside a captured function.
namespace sinter {

/// Tensors by name, in the order in which they are to be listed.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// NumPy's .npy. bfloat16 has no NumPy type and is an Error.
void save_npy(const Tensor& t, const std::string& path);
Tensor load_npy(const std::string& path);

/// safetensors, with text of the caller's beside the tensors.
void save_tensors(const NamedTensors& tensors, const std::string& path, const std::map<std::string, std::string>& metadata = {});
template <std::same_as<std::map<std::string, Tensor>> Map>  // a template, so that braces are a list
void save_tensors(const Map& tensors, const std::string& path, const std::map<std::string, std::string>& metadata = {}) {
  save_tensors(NamedTensors(tensors.begin(), tensors.end()), path, metadata);
}
std::map<std::string, Tensor> load_tensors(const std::string& path);

namespace nn {

struct LoadStateOptions {
  bool strict = true;  ///< false: names that the file lacks, or has beyond the module's, are passed over
};

/// Parameters and buffers by name, as safetensors. The NAME.safetensors of a saved program of this module is one too; it lacks what that
/// program doesn't read, for which there is {.strict = false}.
void save_state(Module& module, const std::string& path);
/// Puts the file's values into the module's cells; handles, optimizers and compiled functions see them. All names that are missing, unexpected
/// or of another type are listed in one Error, and then nothing was changed.
void load_state(Module& module, const std::string& path, LoadStateOptions options = {});

}  // namespace nn

namespace optim {

/// Everything that an optimizer carries from step to step, so that training goes on after a restart as if there had been none. Options such
/// as momentum are not in the file: make the new optimizer with the same ones, for the same parameters in the same order.
void save_state(Optimizer& optimizer, const std::string& path);
void load_state(Optimizer& optimizer, const std::string& path);

}  // namespace optim
}  // namespace sinter
